"""Resend: one mail per call or a hundred, each call under a key that Resend dedupes for a day.

Source: resend.com/docs/api-reference (emails/send-email, emails/send-batch-emails, errors, introduction).
"""

from tocsin.connectors.email.resend.account import DELIVER_MAX_S, SPEC, Resend
from tocsin.connectors.email.resend.config import ResendConfig

__all__ = ["DELIVER_MAX_S", "SPEC", "Resend", "ResendConfig"]
