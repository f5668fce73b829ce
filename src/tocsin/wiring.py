"""The composition root: settings become a running App, an API process, a worker; it alone sees every layer."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from tocsin import __version__
from tocsin.connectors.base import Connector
from tocsin.connectors.email.resend import Resend, ResendConfig
from tocsin.connectors.email.smtp import Smtp, SmtpConfig
from tocsin.connectors.inapp import InApp
from tocsin.connectors.log import Log
from tocsin.domain.channel import Channel
from tocsin.domain.clock import Clock
from tocsin.domain.errors import TocsinError, Unavailable
from tocsin.domain.message import Mailbox
from tocsin.engine.assembly import Defaults, UnsubscribeUrl
from tocsin.engine.intake import Intake
from tocsin.engine.lane import Lane
from tocsin.engine.timing import Timing
from tocsin.engine.upkeep import Upkeep
from tocsin.engine.worker import Worker
from tocsin.service import unsubscribe
from tocsin.service.app import App
from tocsin.settings import Email, Settings
from tocsin.store import lanes
from tocsin.store import secrets as kept
from tocsin.store import upkeep as partitions
from tocsin.store.clock import RESYNC_S, DatabaseClock
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Database, Sizes
from tocsin.wire import tokens
from tocsin.wire.http import HttpClient

#: Sender of a project that has none, where the settings name none either.
FALLBACK_SENDER = "notifications@example.com"
#: What a new account of a provider may do. Resend: 2 requests per second and team in older plans,
#: 5 in newer ones (its documentation, 2026-11-30).
KNOWN_CALLS_PER_S = {"resend": 2.0}
SIGNING_SECRET = "signing_secret"  # noqa: S105 - the name of a row, not a secret


@dataclass(frozen=True, slots=True)
class Core:
    """What API and worker share: the database, its clock, hints, and the lanes by channel."""

    settings: Settings
    db: Database
    clock: DatabaseClock
    notifier: Notifier
    lanes: dict[str, int]
    signing_secret: bytes


@asynccontextmanager
async def open_core(
    settings: Settings, url: str, *, role: str, listen: bool = True
) -> AsyncIterator[Core]:
    """Connect to a migrated database; everything is closed when the block ends."""
    sizes = Sizes(settings.database.max_connections, settings.database.queue_connections)
    async with await Database.open(url, sizes=sizes, application_name=f"tocsin {role}") as db:
        clock = DatabaseClock(db)
        await clock.resync()
        await partitions.ensure_partitions(db, clock.now())
        notifier = Notifier(url, listen=listen)
        await notifier.start()
        syncing = asyncio.create_task(_keep_time(clock), name="clock")
        # In every process: an API alone for days must find tomorrow's partitions too.
        upkeep = Upkeep(db, clock)
        upkeep.start()
        try:
            yield Core(
                settings=settings,
                db=db,
                clock=clock,
                notifier=notifier,
                lanes=await _ensure_lanes(db, settings, clock.now()),
                signing_secret=await _signing_secret(db, settings, clock.now()),
            )
        finally:
            syncing.cancel()
            await upkeep.stop()
            await asyncio.gather(syncing, return_exceptions=True)
            await notifier.stop()


@asynccontextmanager
async def open_app(core: Core) -> AsyncIterator[App]:
    """The API's App, its intake open; on leaving, all that was taken is answered first."""
    intake = Intake(core.db, core.clock, core.notifier)
    intake.start()
    try:
        yield App(
            db=core.db,
            clock=core.clock,
            notifier=core.notifier,
            settings=core.settings,
            intake=intake,
            lanes=core.lanes,
            signing_secret=core.signing_secret,
            version=__version__,
        )
    finally:
        await intake.stop()


@asynccontextmanager
async def open_worker(core: Core) -> AsyncIterator[Worker]:
    """A running worker for every configured channel; on leaving, it drains."""
    serving = [
        Lane(
            core.lanes[channel],
            channel,
            connector(core.settings, channel, core.clock),
            paced=calls_per_s(core.settings, provider) is not None,
            claim_max=core.settings.worker.batch_size,
        )
        for channel, provider in configured(core.settings).items()
    ]
    email = core.settings.connectors.email
    worker = Worker(
        serving,
        db=core.db,
        clock=core.clock,
        notifier=core.notifier,
        defaults=Defaults(
            sender=Mailbox(email.from_email or FALLBACK_SENDER, email.from_name),
            unsubscribe_url=_unsubscribe_url(core),
        ),
        version=__version__,
        timing=Timing(
            lease_s=core.settings.worker.lease_s,
            poll_s=core.settings.worker.poll_interval_ms / 1000,
        ),
    )
    worker.start()
    try:
        yield worker
    finally:
        await worker.stop()


def configured(settings: Settings) -> dict[Channel, str]:
    """The channels that have a provider, with its name."""
    found: dict[Channel, str] = {"in_app": "inapp"}
    email = email_provider(settings.connectors.email)
    if email is not None:
        found["email"] = email
    return found


def calls_per_s(settings: Settings, provider: str) -> float | None:
    """The rate of an email provider's lane: the configured one, else what it is known for; None for none."""
    if provider == "inapp":
        return None
    asked = settings.worker.pacing.email_per_sec
    return KNOWN_CALLS_PER_S.get(provider) if asked is None else asked or None


def email_provider(email: Email) -> str | None:
    """The one that is named, else the one that has what it needs."""
    if email.provider is not None:
        return None if email.provider == "none" else email.provider
    if email.resend.api_key:
        return "resend"
    return "smtp" if email.smtp.host else None


def connector(settings: Settings, channel: Channel, clock: Clock) -> Connector:
    """The provider account of a configured channel."""
    email = settings.connectors.email
    match configured(settings)[channel]:
        case "inapp":
            return InApp()
        case "log":
            return Log(channel, batch_max=email.log_batch)
        case "resend":
            key = email.resend.api_key
            config = ResendConfig(key.reveal() if key else "", email.resend.base_url)
            return Resend(config, http=HttpClient(), clock=clock)
        case "smtp":
            smtp = email.smtp
            return Smtp(
                SmtpConfig(
                    host=smtp.host or "",
                    port=smtp.port or (465 if smtp.security == "tls" else 587),
                    username=smtp.username,
                    password=smtp.password.reveal() if smtp.password else None,
                    security=smtp.security,
                )
            )
        case other:
            raise TocsinError("unknown_provider", f"there is no provider named {other}")


async def _ensure_lanes(db: Database, settings: Settings, now: datetime) -> dict[str, int]:
    return {
        channel: await lanes.ensure_lane(
            db,
            channel=channel,
            provider=provider,
            account="default",
            now=now,
            calls_per_s=calls_per_s(settings, provider),
        )
        for channel, provider in configured(settings).items()
    }


async def _signing_secret(db: Database, settings: Settings, now: datetime) -> bytes:
    """The configured secret, else one that the first process makes and all others read."""
    if settings.server.jwt_secret:
        return settings.server.jwt_secret.reveal().encode()
    await kept.keep(db, SIGNING_SECRET, secrets.token_bytes(tokens.SECRET_BYTES_MIN), now)
    secret = await kept.read(db, SIGNING_SECRET)
    assert secret is not None
    return secret


def _unsubscribe_url(core: Core) -> UnsubscribeUrl:
    base = (core.settings.server.public_url or "").rstrip("/")
    key = tokens.derive_key(core.signing_secret, "unsubscribe")

    def url(project: int, address: str, now: datetime) -> str | None:
        return f"{base}/u/{unsubscribe.token(key, project, address, now)}" if base else None

    return url


async def _keep_time(clock: DatabaseClock) -> None:
    while True:
        await asyncio.sleep(RESYNC_S)
        with suppress(Unavailable):
            await clock.resync()
