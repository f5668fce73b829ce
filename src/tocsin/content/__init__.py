"""Template and data in, message content out."""
