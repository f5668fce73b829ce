"""Inbox feed: one loop per process reads the changes of every followed inbox in one query per tick.

A hint says that an inbox changed; its changes are always read from the log, from the version each
reader has. A slower sweep compares versions, so a lost hint costs SWEEP_S and nothing else.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import structlog

from tocsin.domain.errors import TocsinError
from tocsin.service.app import App
from tocsin.store import inbox_changes
from tocsin.store.inbox_changes import CHANGES_MAX, HINT_PREFIX, Change, Cursor, Start, hint_of

__all__ = ["Change", "Feed", "Follower", "Reader"]

#: Hints within this time are answered by one query.
TICK_S: Final = 0.005
SWEEP_S: Final = 5.0
RETRY_S: Final = 1.0
INBOXES_PER_QUERY: Final = 1_000
#: A reader further behind than this fetches the list again instead.
REPLAY_MAX: Final = 1_000

_log = structlog.get_logger()


class Follower(Protocol):
    """Who follows an inbox; called from the loop, never blocks, never raises."""

    def changed(self, changes: Sequence[Change], version: int, unread: int) -> None:
        """Changes in order, perhaps none, and what the inbox's count is after them."""
        ...

    def reset(self, version: int, unread: int) -> None:
        """What lies between is not to be had: fetch the list, and go on from this version."""
        ...


class Reader:
    """One follower's place. version: what it has, None before it was placed."""

    __slots__ = ("after", "follower", "name", "project", "subscriber_id", "version")

    def __init__(
        self, project: int, subscriber_id: str, after: int | None, follower: Follower
    ) -> None:
        self.project = project
        self.subscriber_id = subscriber_id
        self.name = hint_of(project, subscriber_id)
        self.after = after
        self.version: int | None = None
        self.follower = follower


class Feed:
    """Owns the loop. join and leave may be called at any time from the same event loop."""

    def __init__(self, app: App, *, sweep_s: float = SWEEP_S) -> None:
        self._app = app
        self._sweep_s = sweep_s
        self._hints = app.notifier.subscribe(prefixes=(HINT_PREFIX,))
        self._readers: dict[str, list[Reader]] = {}
        self._arriving: list[Reader] = []
        self._behind: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="inbox feed")

    async def stop(self) -> None:
        """Follow nothing any more."""
        self._hints.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def followed(self, project: int, subscriber_id: str) -> int:
        """How many follow this inbox."""
        return len(self._readers.get(hint_of(project, subscriber_id), ()))

    def join(
        self, project: int, subscriber_id: str, after: int | None, follower: Follower
    ) -> Reader:
        """Follow an inbox from the version after `after`, or from now on when that is None."""
        reader = Reader(project, subscriber_id, after, follower)
        self._readers.setdefault(reader.name, []).append(reader)
        self._arriving.append(reader)
        self._hints.tell(reader.name)
        return reader

    def leave(self, reader: Reader) -> None:
        """Follow no more; harmless when it is repeated."""
        readers = self._readers.get(reader.name)
        if readers is None or reader not in readers:
            return
        readers.remove(reader)
        if not readers:
            del self._readers[reader.name]

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        swept = clock()
        while True:
            wait_s = 0.0 if self._behind or self._arriving else swept + self._sweep_s - clock()
            heard = await self._hints.wait(max(wait_s, 0.0))
            due = self._behind | (heard.names & self._readers.keys())
            self._behind = set()
            moved: dict[str, int] = {}
            try:
                if heard.everything or clock() - swept >= self._sweep_s:
                    swept = clock()
                    moved = await self._moved()
                await self._place()
                await self._read(due | self._behind | moved.keys(), moved)
            except TocsinError as error:
                _log.warning("inbox_feed.failed", code=error.code, retry_in_s=RETRY_S)
                self._hints.tell(None)
                await asyncio.sleep(RETRY_S)
            await asyncio.sleep(TICK_S)

    async def _place(self) -> None:
        """Find out where the readers that joined since the last tick stand."""
        while self._arriving:
            part = self._arriving[:INBOXES_PER_QUERY]
            wanted = [(r.project, r.subscriber_id, r.after) for r in part]
            found = await inbox_changes.starts(self._app.db, wanted)
            # Only now, so that a failed query leaves them waiting.
            del self._arriving[: len(part)]
            for reader, start in zip(part, found, strict=True):
                self._placed(reader, start)

    def _placed(self, reader: Reader, start: Start) -> None:
        after = start.after
        reader.version = start.version
        if after is None or after == start.version:
            reader.follower.changed((), start.version, start.unread)
        elif (
            after < start.version
            and start.next == after + 1
            and start.version - after <= REPLAY_MAX
        ):
            reader.version = after
            self._behind.add(reader.name)
        else:
            reader.follower.reset(start.version, start.unread)

    async def _moved(self) -> dict[str, int]:
        """The versions of inboxes that are ahead of a reader; readers ahead of one are placed anew."""
        ahead = {}
        for part in _parts(self._cursors(self._readers)):
            for now in await inbox_changes.moved(self._app.db, part):
                name = hint_of(now.project, now.subscriber_id)
                ahead[name] = now.version
                for reader in self._readers.get(name, ()):
                    if reader.version is not None and reader.version > now.version:
                        self._replace(reader)
        return ahead

    def _replace(self, reader: Reader) -> None:
        reader.after, reader.version = reader.version, None
        self._arriving.append(reader)

    def _cursors(self, names: Iterable[str]) -> list[Cursor]:
        cursors = []
        for name in names:
            placed = [r for r in self._readers.get(name, ()) if r.version is not None]
            if placed:
                lowest = min(r.version for r in placed if r.version is not None)
                cursors.append(Cursor(placed[0].project, placed[0].subscriber_id, lowest))
        return cursors

    async def _read(self, names: set[str], versions: dict[str, int]) -> None:
        """Deliver what is new in these inboxes. versions: what some of them are known to have."""
        for part in _parts(self._cursors(names)):
            rows: dict[str, list[Change]] = defaultdict(list)
            for change in await inbox_changes.changes_after(self._app.db, part):
                rows[hint_of(change.project, change.subscriber_id)].append(change)
            for cursor in part:
                name = hint_of(cursor.project, cursor.subscriber_id)
                if found := rows.get(name):
                    self._deliver(name, cursor, found)
                elif versions.get(name, 0) > cursor.version:
                    self._replace_all(name, versions[name])

    def _replace_all(self, name: str, version: int) -> None:
        """The log lost what these readers lack."""
        for reader in self._readers.get(name, ()):
            if reader.version is not None and reader.version < version:
                self._replace(reader)

    def _deliver(self, name: str, cursor: Cursor, changes: list[Change]) -> None:
        last = changes[-1]
        gap = changes[0].version != cursor.version + 1
        for reader in tuple(self._readers.get(name, ())):
            version = reader.version
            if version is None or version >= last.version:
                continue
            if gap:
                self._replace(reader)
                continue
            reader.version = last.version
            news = [change for change in changes if change.version > version]
            reader.follower.changed(news, last.version, last.unread)
        if len(changes) == CHANGES_MAX:
            self._behind.add(name)


def _parts(cursors: list[Cursor]) -> Iterable[list[Cursor]]:
    for start in range(0, len(cursors), INBOXES_PER_QUERY):
        yield cursors[start : start + INBOXES_PER_QUERY]
