"""Providers of email."""
