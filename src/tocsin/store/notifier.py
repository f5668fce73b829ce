"""Wake-up hints between processes: one LISTEN connection each, coalesced, never in a write.

A hint is a name ("lane:3", "inbox:…") and never data; it may be lost. Whoever waits for one looks
again after a while in any case, and looks at everything after a doubt.
"""

import asyncio
import random
import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import msgspec
import structlog

from tocsin.domain.errors import TocsinError, Unavailable
from tocsin.store.pool import Session, open_session
from tocsin.store.query import Query
from tocsin.store.subscription import Subscription

CHANNEL = "tocsin"
COALESCE_S = 0.005
# PostgreSQL takes payloads shorter than 8,000 bytes.
PAYLOAD_BYTES_MAX = 7_900
PENDING_MAX = 10_000
CHECK_S = 10.0
CHECK_TIMEOUT_S = 5.0
RECONNECT_FIRST_S = 0.1
RECONNECT_MAX_S = 5.0

NOTIFY = Query("notify", "SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p")

# Instead of a list of names: so many that all must be looked at.
_ALL = "[]"
# Begins a payload that only its sender cares for: it proves that hints come through.
_ECHO = "?"

_SETTINGS = {
    # A notifying commit holds a lock of the whole cluster until it is flushed; a hint that a
    # crash forgets is no loss.
    "synchronous_commit": "off",
    "statement_timeout": str(int(CHECK_TIMEOUT_S * 1000)),
}

_log = structlog.get_logger()


def payloads(names: Iterable[str]) -> list[str]:
    """Names as JSON lists of at most PAYLOAD_BYTES_MAX bytes each; a name too long is left out."""
    packed: list[str] = []
    part: list[str] = []
    size = 0
    for name in names:
        # PostgreSQL takes neither half a surrogate pair nor NUL; JSON escapes the second.
        clean = name.encode("utf-8", "replace").decode()
        item = msgspec.json.encode(clean).decode()
        width = len(item.encode()) + 1
        if width + 1 > PAYLOAD_BYTES_MAX:
            continue
        if part and size + width + 1 > PAYLOAD_BYTES_MAX:
            packed.append(f"[{','.join(part)}]")
            part, size = [], 0
        part.append(item)
        size += width
    if part:
        packed.append(f"[{','.join(part)}]")
    return packed


class Notifier:
    """Hints out and in. With listen=False it has no connection: hints stay in this process."""

    def __init__(self, url: str, *, listen: bool = True) -> None:
        self._url = url
        self._listen = listen
        self._session: Session | None = None
        self._own_pid = 0
        self._exact: dict[str, set[Subscription]] = {}
        self._prefixed: dict[str, set[Subscription]] = {}
        self._pending: set[str] = set()
        self._overflow = False
        self._due = asyncio.Event()
        self._lost = asyncio.Event()
        self._tried = asyncio.Event()
        self._echo = asyncio.Event()
        self._echo_payload = ""
        self._one_statement = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Return once it listens, or once the first attempt failed; it goes on trying."""
        if not self._listen:
            return
        self._tasks = [
            asyncio.create_task(self._keep_connected(), name="notifier connection"),
            asyncio.create_task(self._send_pending(), name="notifier sender"),
        ]
        await self._tried.wait()

    async def stop(self) -> None:
        """Send what is pending, if that goes at once, and close."""
        if self._session is not None:
            await self._send()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    @property
    def listening(self) -> bool:
        """Whether hints of other processes arrive; if not, poll more often."""
        return self._session is not None

    def subscribe(self, *names: str, prefixes: Iterable[str] = ()) -> Subscription:
        """Hear hints of these names, and of all names that start with one of the prefixes."""
        subscription = Subscription(self._forget)
        for name in names:
            self._exact.setdefault(name, set()).add(subscription)
        for prefix in prefixes:
            self._prefixed.setdefault(prefix, set()).add(subscription)
        return subscription

    def _forget(self, subscription: Subscription) -> None:
        for index in (self._exact, self._prefixed):
            for key in [key for key, members in index.items() if subscription in members]:
                index[key].discard(subscription)
                if not index[key]:
                    del index[key]

    def hint(self, *names: str) -> None:
        """Wake whoever waits for these names: here at once, elsewhere within milliseconds."""
        for name in names:
            self._tell(name)
        if not self._listen or not names:
            return
        if len(self._pending) + len(names) > PENDING_MAX:
            self._overflow = True
            self._pending.clear()
        if not self._overflow:
            self._pending.update(names)
        self._due.set()

    def _tell(self, name: str) -> None:
        for subscription in self._exact.get(name, ()):
            subscription.tell(name)
        for prefix, subscriptions in self._prefixed.items():
            if name.startswith(prefix):
                for subscription in subscriptions:
                    subscription.tell(name)

    def _tell_everything(self) -> None:
        for index in (self._exact, self._prefixed):
            for subscriptions in index.values():
                for subscription in subscriptions:
                    subscription.tell(None)

    def _heard(self, pid: int, payload: str) -> None:
        if payload.startswith(_ECHO):
            if payload == self._echo_payload:
                self._echo.set()
            return
        # Its readers were told when the hint was given.
        if pid == self._own_pid:
            return
        try:
            names = msgspec.json.decode(payload, type=list[str])
        except msgspec.MsgspecError:
            names = []
        if not names:
            self._tell_everything()
        for name in names:
            self._tell(name)

    async def _send_pending(self) -> None:
        while True:
            await self._due.wait()
            await self._send()
            await asyncio.sleep(COALESCE_S)

    async def _send(self) -> None:
        self._due.clear()
        names, self._pending = self._pending, set()
        packed = [_ALL] if self._overflow else payloads(names)
        self._overflow = False
        session = self._session
        if session is None or not packed:
            return
        try:
            await self._notify(session, packed)
        except TocsinError as error:
            # Dropped, not repeated: whoever waits polls, and hears of everything on reconnect.
            _log.info("notifier.send_failed", code=error.code)
            self._lost.set()

    async def _notify(self, session: Session, packed: list[str]) -> None:
        async with self._one_statement:
            await session.rows(NOTIFY, CHANNEL, packed)

    async def _keep_connected(self) -> None:
        pause = RECONNECT_FIRST_S
        told = False
        while True:
            try:
                async with self._connected() as session:
                    pause, told = RECONNECT_FIRST_S, False
                    await self._watch(session)
            except TocsinError as error:
                if not told:
                    _log.warning("notifier.not_listening", code=error.code, remedy=error.remedy)
                told = True
            self._tried.set()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, RECONNECT_MAX_S)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Session]:
        session = await open_session(
            self._url,
            application_name="tocsin notifier",
            settings=_SETTINGS,
            command_timeout_s=CHECK_TIMEOUT_S,
        )
        self._lost = lost = asyncio.Event()
        session.on_lost(lost.set)
        try:
            self._own_pid = session.backend_pid
            await session.listen(CHANNEL, self._heard)
            await self._check(session)
            self._session = session
            # What was hinted before LISTEN was heard by nobody here.
            self._tell_everything()
            self._tried.set()
            yield session
        except TocsinError:
            # It may be silent: a farewell would wait for it.
            session.terminate()
            raise
        finally:
            self._session = None
            await session.close()

    async def _watch(self, session: Session) -> None:
        """Return when the connection is lost; a silent one is tried every CHECK_S."""
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(CHECK_S):
                    await self._lost.wait()
            except TimeoutError:
                await self._check(session)

    async def _check(self, session: Session) -> None:
        """Hear our own voice: a pooler in transaction mode takes LISTEN and delivers nothing."""
        self._echo.clear()
        self._echo_payload = _ECHO + secrets.token_hex(8)
        await self._notify(session, [self._echo_payload])
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await self._echo.wait()
        except TimeoutError:
            raise Unavailable(
                "notifications_lost",
                "the database takes LISTEN and delivers no notification",
                remedy="connect without a pooler, or with one in session mode; until then Tocsin polls",
            ) from None
