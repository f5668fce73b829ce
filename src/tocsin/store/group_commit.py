"""Group commit: whatever gathers while the last commit is in flight goes in the next one."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from tocsin.domain.errors import Unavailable

Row = TypeVar("Row")
Answer = TypeVar("Answer")

RETRY_AFTER_S = 1
# Commits spent on finding the rows that spoil a failed group: enough for three in five hundred.
ISOLATING_COMMITS_MAX = 64


class _Entry(Generic[Row, Answer]):
    """What one caller submitted: its rows stay together, in one commit."""

    __slots__ = ("future", "rows", "weight")

    def __init__(
        self, rows: Sequence[Row], weight: int, future: asyncio.Future[list[Answer | Exception]]
    ) -> None:
        self.rows = rows
        self.weight = weight
        self.future = future


class GroupCommit(Generic[Row, Answer]):
    """Callers submit rows and await their answers; `commit` is called with many rows at once.

    commit: gets rows of several callers, gives one answer for each, in order. It must be one
    transaction: raising means that nothing was stored, except Unavailable, which says nothing.
    An answer that is an Exception is raised to the caller of that row alone.
    rows_max: most rows (by weight) of one commit; one caller's rows are never split, so more
    come only when one caller brought more. queue_max: most rows waiting; past it submit raises
    Unavailable. parallel: commits in flight. weigh: how many rows a row counts for, default 1.
    """

    def __init__(
        self,
        commit: Callable[[list[Row]], Awaitable[Sequence[Answer | Exception]]],
        *,
        rows_max: int,
        queue_max: int,
        parallel: int = 1,
        weigh: Callable[[Row], int] | None = None,
        name: str = "commit",
    ) -> None:
        self._commit = commit
        self._rows_max = rows_max
        self._queue_max = queue_max
        self._parallel = parallel
        self._weigh = weigh
        self._name = name
        self._waiting: deque[_Entry[Row, Answer]] = deque()
        self._weight = 0
        self._tasks: set[asyncio.Task[None]] = set()
        # Not len(_tasks): a task leaves that set one turn after it saw the queue empty.
        self._draining = 0
        self._open = False

    def start(self) -> None:
        """Open for rows, on the running loop."""
        self._loop = asyncio.get_running_loop()
        # A commit serves many callers: it must not log under the name of whoever came first.
        self._context = contextvars.copy_context()
        self._open = True

    async def stop(self) -> None:
        """Refuse new rows, and return when all that were taken are answered."""
        self._open = False
        while self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def waiting(self) -> int:
        """Rows (by weight) that no commit has taken yet."""
        return self._weight

    async def submit(self, row: Row) -> Answer:
        """Store one row; its answer, once the commit that holds it is durable."""
        weight = 1 if self._weigh is None else self._weigh(row)
        answer = (await self._enter((row,), weight))[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def submit_many(self, rows: Sequence[Row]) -> list[Answer | Exception]:
        """Store all rows in one commit; one answer for each, in order."""
        if not rows:
            return []
        weigh = self._weigh
        weight = len(rows) if weigh is None else sum(weigh(row) for row in rows)
        return await self._enter(rows, weight)

    def _enter(self, rows: Sequence[Row], weight: int) -> asyncio.Future[list[Answer | Exception]]:
        if not self._open:
            raise Unavailable(
                "stopping",
                f"the server takes no more rows for {self._name}: it is stopping",
                remedy="send the request again",
                retry_after_s=RETRY_AFTER_S,
            )
        # An empty queue takes a group of any size, or that group could never be stored.
        if self._weight and self._weight + weight > self._queue_max:
            raise Unavailable(
                "overloaded",
                f"{self._weight} rows wait for {self._name}; the queue is full",
                remedy="send the request again after the time in Retry-After",
                retry_after_s=RETRY_AFTER_S,
            )
        future: asyncio.Future[list[Answer | Exception]] = self._loop.create_future()
        self._waiting.append(_Entry(rows, weight, future))
        self._weight += weight
        if self._draining < self._parallel:
            # It starts in the next turn of the loop, with all that this turn still brings.
            self._draining += 1
            task = self._loop.create_task(self._drain(), context=self._context)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return future

    async def _drain(self) -> None:
        group: list[_Entry[Row, Answer]] = []
        try:
            while group := self._take():
                await self._settle(group)
        except BaseException:
            # Cancelled from outside: nobody may be left waiting for ever.
            _fail([*group, *self._waiting], _interrupted(self._name))
            self._waiting.clear()
            self._weight = 0
            raise
        finally:
            self._draining -= 1

    def _take(self) -> list[_Entry[Row, Answer]]:
        group: list[_Entry[Row, Answer]] = []
        room = self._rows_max
        while self._waiting and (not group or self._waiting[0].weight <= room):
            entry = self._waiting.popleft()
            self._weight -= entry.weight
            # A caller that gave up before its rows were taken has withdrawn them.
            if not entry.future.done():
                room -= entry.weight
                group.append(entry)
        return group

    async def _settle(self, group: list[_Entry[Row, Answer]]) -> None:
        """Commit a group; when it fails for its rows' sake, halve until they stand alone."""
        pending = [group]
        tries = 0
        while pending:
            part = pending.pop()
            tries += 1
            rows = [row for entry in part for row in entry.rows]
            try:
                answers = await self._commit(rows)
            except Exception as error:  # noqa: BLE001 - it is raised to those who wait for it
                lone = len(part) == 1 or tries > ISOLATING_COMMITS_MAX
                if lone or isinstance(error, Unavailable):
                    _fail(part, error)
                else:
                    middle = len(part) // 2
                    pending += [part[middle:], part[:middle]]
                continue
            if len(answers) == len(rows):
                _answer(part, answers)
            else:
                said = f"{self._name}: {len(answers)} answers for {len(rows)} rows"
                _fail(part, RuntimeError(said))


def _interrupted(name: str) -> Unavailable:
    return Unavailable(
        "interrupted",
        f"{name} was interrupted; whether the row was stored is unknown",
        remedy="repeat the call with the same idempotency key",
        retry_after_s=RETRY_AFTER_S,
    )


def _fail(group: list[_Entry[Row, Answer]], error: Exception) -> None:
    for entry in group:
        if not entry.future.done():
            entry.future.set_exception(error)


def _answer(group: list[_Entry[Row, Answer]], answers: Sequence[Answer | Exception]) -> None:
    at = 0
    for entry in group:
        end = at + len(entry.rows)
        if not entry.future.done():
            entry.future.set_result(list(answers[at:end]))
        at = end
