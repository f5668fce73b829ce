"""Faithful fake providers with scripted faults; they ship with the product."""
