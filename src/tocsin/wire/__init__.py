"""Protocols, ignorant of notifications."""
