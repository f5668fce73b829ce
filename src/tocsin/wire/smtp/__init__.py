"""The SMTP client: pooled, pipelined connections to one server; what became of each mail, as an Outcome."""

from tocsin.wire.smtp.account import Account, Security, Timeouts
from tocsin.wire.smtp.pool import SmtpPool
from tocsin.wire.smtp.transaction import Delivery, Envelope

__all__ = ["Account", "Delivery", "Envelope", "Security", "SmtpPool", "Timeouts"]
