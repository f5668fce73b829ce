"""Tocsin: a notification service on PostgreSQL alone."""

__version__ = "0.1.0"
