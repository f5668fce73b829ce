"""What the SMTP sink is told to be and to do wrong: extensions, users, recipients it refuses, faults to come."""

import ssl
from collections import deque
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from msgspec import Struct

SCRIPT_MAX = 10_000

Step: TypeAlias = Literal["connect", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "body"]


class SmtpFault(Struct, frozen=True):
    """What the next `times` visits to a step meet instead of the honest answer.

    reply: answered with `reply`, then closed if `close`; without `reply` and `close`: no answer at all.
    reset: the connection is reset instead of closed.
    For the body only, accept: the mail is taken first; delay_s: it is taken, and answered late;
    early: the fault comes with the first bytes of the mail, not after the last.
    """

    step: Step
    reply: str | None = None
    close: bool = False
    reset: bool = False
    delay_s: float | None = None
    accept: bool = False
    early: bool = False
    times: int = 1


class Manners(Struct, frozen=True):
    """How the sink behaves while no fault is due.

    starttls, tls: server contexts, for the extension and for TLS from the first byte.
    users: name to password; if any are given, MAIL needs AUTH. recipients: reply by address pattern (fnmatch),
    the first that fits. mails_per_connection: then 421. after_starttls: bytes sent in the clear right behind the
    220 of STARTTLS. data_without_recipients: DATA gets 354 though every RCPT was refused.
    """

    extensions: tuple[str, ...] = ("PIPELINING", "8BITMIME", "SMTPUTF8", "SIZE 33554432")
    starttls: ssl.SSLContext | None = None
    tls: ssl.SSLContext | None = None
    users: dict[str, str] = {}
    mechanisms: str = "PLAIN LOGIN"
    recipients: tuple[tuple[str, str], ...] = ()
    mails_per_connection: int | None = None
    connections_max: int | None = None
    after_starttls: bytes = b""
    data_without_recipients: bool = False
    knows_ehlo: bool = True

    def reply_to(self, address: str) -> str | None:
        """The refusal of a recipient, if any."""
        for pattern, reply in self.recipients:
            if fnmatchcase(address, pattern):
                return reply
        return None


class SmtpScript:
    """The faults to come, in order for each step."""

    def __init__(self) -> None:
        self._coming: dict[Step, deque[SmtpFault]] = {}

    def add(self, *faults: SmtpFault) -> None:
        for fault in faults:
            coming = self._coming.setdefault(fault.step, deque())
            if len(coming) + fault.times > SCRIPT_MAX:
                raise ValueError(f"more than {SCRIPT_MAX} faults are waiting")
            coming.extend([fault] * fault.times)

    def peek(self, step: Step) -> SmtpFault | None:
        coming = self._coming.get(step)
        return coming[0] if coming else None

    def take(self, step: Step) -> SmtpFault | None:
        coming = self._coming.get(step)
        return coming.popleft() if coming else None
