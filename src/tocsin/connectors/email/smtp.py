"""Any SMTP server or relay (RFC 5321): our own pooled, pipelined client and our own MIME writer.

Docs: https://www.rfc-editor.org/rfc/rfc5321. A server does not dedupe: what was sent and not answered is Unknown,
and our job id stands in Message-ID and X-Tocsin-Job-Id.
"""

from collections.abc import Sequence
from typing import Final

import structlog
from msgspec import Struct
from msgspec.structs import replace

from tocsin.connectors.base import Call, Spec
from tocsin.domain.errors import Invalid
from tocsin.domain.message import EmailMessage, Message
from tocsin.domain.outcome import Accepted, ContentRejected, Outcome, RecipientPermanent
from tocsin.wire.addresses import wire_address
from tocsin.wire.mime import parse_listed, write
from tocsin.wire.smtp import Account, Envelope, Security, SmtpPool, Timeouts

POOL_SIZE: Final = 10

SPEC: Final = Spec(
    name="smtp",
    channel="email",
    title="SMTP",
    docs="https://www.rfc-editor.org/rfc/rfc5321",
    checked="2026-11-30",
    in_flight_max=POOL_SIZE,
)

_log = structlog.get_logger(__name__)


class SmtpConfig(Struct, frozen=True):
    """security: starttls (587), tls (465), none (a relay on this machine: the password goes in the clear).

    pool_size: connections at one time. helo: the name we give, by default the address of our end.
    ca_pem: certificates trusted besides the system's.
    """

    host: str
    port: int = 587
    username: str | None = None
    password: str | None = None
    security: Security = "starttls"
    pool_size: int = POOL_SIZE
    helo: str | None = None
    ca_pem: bytes | None = None
    timeouts: Timeouts = Timeouts()

    def __repr__(self) -> str:
        """Without the password."""
        return f"SmtpConfig({self.host!r}, {self.port}, security={self.security!r})"


class Smtp:
    """An account on an SMTP server."""

    def __init__(self, config: SmtpConfig) -> None:
        self._spec = replace(SPEC, in_flight_max=config.pool_size)
        account = Account(
            host=config.host,
            port=config.port,
            username=config.username,
            password=config.password,
            security=config.security,
            helo=config.helo,
            ca_pem=config.ca_pem,
            timeouts=config.timeouts,
        )
        self._pool = SmtpPool(account, size=config.pool_size)

    @property
    def spec(self) -> Spec:
        return self._spec

    def freeze(self, messages: Sequence[Message]) -> bytes:
        raise TypeError(f"SMTP does not dedupe: {len(messages)} messages have no frozen body")

    async def deliver(self, call: Call) -> list[Outcome]:
        return [await self._send(message) for message in call.messages]

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def _send(self, message: Message) -> Outcome:
        if not isinstance(message, EmailMessage):
            raise TypeError(f"SMTP carries email, not {type(message).__name__}")
        try:
            envelope = _envelope(message)
        except Invalid as refusal:
            if refusal.field == "to":
                return RecipientPermanent(refusal.code, refusal.detail)
            return ContentRejected(refusal.code, refusal.detail)
        delivery = await self._pool.send(envelope)
        if delivery.copies_refused:
            job_id = str(message.job_id)
            _log.warning("smtp_copies_refused", job_id=job_id, count=delivery.copies_refused)
        match delivery.outcome:
            case Accepted(provider_message_id=None):
                return Accepted(message.message_id)
            case outcome:
                return outcome


def _envelope(mail: EmailMessage) -> Envelope:
    """Raises Invalid naming the field of what no server could take."""
    to = wire_address(mail.to.address, "to")
    copies = dict.fromkeys(wire_address(parse_listed(text, "cc").address, "cc") for text in mail.cc)
    copies.pop(to, None)
    return Envelope(wire_address(mail.sender.address, "from"), to, write(mail), tuple(copies))
