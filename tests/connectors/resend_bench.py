"""A Resend account before the simulator, and the mails it is given."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from msgspec.structs import replace

from tests.connectors.contract import NOW
from tests.connectors.subjects import API_KEY, Frozen
from tocsin.connectors.base import Call
from tocsin.connectors.email.resend import Resend, ResendConfig
from tocsin.connectors.email.resend.body import body_of
from tocsin.domain.ids import uuid7s
from tocsin.domain.message import EmailMessage, Mailbox
from tocsin.simulators.asgi import serving
from tocsin.simulators.fault import Fault
from tocsin.simulators.resend import Limits, ResendSimulator
from tocsin.wire.http import HttpClient

JOB = UUID("01900000-0000-7000-8000-000000000001")
REFUSED = Fault("status", 422, '{"name":"validation_error","message":"Something is wrong"}')


@dataclass
class Bench:
    """A Resend account before a simulator; `calls` are the requests as they came: path and key."""

    simulator: ResendSimulator
    resend: Resend
    calls: list[tuple[str, str]] = field(default_factory=list)


@asynccontextmanager
async def resend(limits: Limits | None = None, *faults: Fault) -> AsyncIterator[Bench]:
    simulator = ResendSimulator(limits or Limits(requests_per_s=1000))
    simulator.faults.add(*faults)
    calls: list[tuple[str, str]] = []

    async def recording(scope, receive, send) -> None:
        calls.append((scope["path"], dict(scope["headers"])[b"idempotency-key"].decode()))
        await simulator(scope, receive, send)

    async with serving(recording) as url:
        made = Resend(ResendConfig(API_KEY, url), http=HttpClient(), clock=Frozen())
        yield Bench(simulator, made, calls)
        await made.aclose()


def mail(job_id: UUID = JOB, **changes) -> EmailMessage:
    plain = EmailMessage(
        job_id,
        Mailbox("news@example.com"),
        Mailbox("jane@example.com"),
        "Hi",
        "1@example.com",
        NOW,
        text="Hello",
    )
    return replace(plain, **changes)


def calling(*mails: EmailMessage) -> Call:
    job_ids = tuple(each.job_id for each in mails)
    key = str(job_ids[0]) if len(mails) == 1 else "batch-1"
    return Call(key, job_ids, mails, body_of(mails))


def mails(count: int, **changes) -> list[EmailMessage]:
    return [mail(job_id, **changes) for job_id in uuid7s(NOW, count)]


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
