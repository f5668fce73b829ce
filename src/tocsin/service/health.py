"""Health: does the database answer and take writes, and does any worker make progress."""

import asyncio
from datetime import datetime
from typing import Final

import structlog
from msgspec import Struct

from tocsin.domain.channel import CHANNELS
from tocsin.domain.errors import TocsinError
from tocsin.service.app import App
from tocsin.service.principal import ProjectKey
from tocsin.store import vitals, workers

#: Longer than this is no answer.
DATABASE_TIMEOUT_S: Final = 3.0
#: Anyone may ask, so the same answer serves all who ask within this.
FRESH_S: Final = 1.0

_log = structlog.get_logger()


class WorkerOut(Struct, frozen=True):
    version: str
    started_at: datetime
    progressed_at: datetime


class Health(Struct, frozen=True):
    """status: `ok` or `degraded`; db: `ok`, `read_only` or `error`; workers: those that made progress

    in the last 15 seconds.
    """

    status: str
    db: str
    version: str
    commit: str | None
    built_at_epoch: int | None
    uptime_seconds: int
    workers: list[WorkerOut]


class ChannelState(Struct, frozen=True):
    """allowed: by the project; configured: a provider is set up for it."""

    allowed: bool
    configured: bool


class ChannelsAnswer(Struct, frozen=True):
    channels: dict[str, ChannelState]


class Probe:
    """Answers how things stand, from at most one query at a time and one in FRESH_S."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._started = asyncio.get_running_loop().time()
        self._asked = -FRESH_S
        self._answer: asyncio.Future[Health] | None = None

    async def check(self) -> Health:
        """The state of the service, at most FRESH_S old; it never raises."""
        now = asyncio.get_running_loop().time()
        if self._answer is None or now - self._asked >= FRESH_S:
            self._asked = now
            self._answer = asyncio.ensure_future(self._ask(now - self._started))
        return await asyncio.shield(self._answer)

    async def _ask(self, uptime_s: float) -> Health:
        alive: list[workers.WorkerRow] = []
        database = "ok"
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT_S):
                alive = await workers.alive(self._app.db, now=self._app.clock.now())
                if not await vitals.takes_writes(self._app.db):
                    database = "read_only"
        except (TocsinError, TimeoutError) as error:
            _log.warning("health.database", error=type(error).__name__)
            database = "error"
        return Health(
            status="ok" if alive and database == "ok" else "degraded",
            db=database,
            version=self._app.version,
            commit=None,
            built_at_epoch=None,
            uptime_seconds=int(uptime_s),
            workers=[WorkerOut(w.version, w.started_at, w.progressed_at) for w in alive],
        )


def channels(app: App, who: ProjectKey) -> ChannelsAnswer:
    """Every channel, whether the project lists it and whether it can be sent on."""
    return ChannelsAnswer(
        {name: ChannelState(name in who.channels, name in app.lanes) for name in CHANNELS}
    )
