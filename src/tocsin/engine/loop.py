"""The start-stop contract of every engine loop: a supervised task that survives its own failures."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

from tocsin.domain.errors import Unavailable

FAILED_WAIT_S = 0.5
FAILED_WAIT_MAX_S = 5.0

_log = structlog.get_logger()


class Loop:
    """Runs `turn` again and again until stopped; a turn that fails is logged and tried again.

    turn: one pass; it waits for its own work. moved_at: loop time of the last turn that succeeded.
    """

    def __init__(self, name: str, turn: Callable[[], Awaitable[None]]) -> None:
        self._name = name
        self._turn = turn
        self.task: asyncio.Task[None] | None = None
        self.moved_at = 0.0

    def start(self) -> None:
        self.moved_at = asyncio.get_running_loop().time()
        self.task = asyncio.create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """End between two awaits of the turn."""
        if self.task is None:
            return
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.task = None

    @property
    def still_for_s(self) -> float:
        """Seconds since a turn last succeeded."""
        return asyncio.get_running_loop().time() - self.moved_at

    async def _run(self) -> None:
        wait_s = FAILED_WAIT_S
        while True:
            try:
                await self._turn()
            except Unavailable as error:
                _log.warning("loop_waits", loop=self._name, code=error.code)
            except Exception:  # noqa: BLE001 - the loop is what must survive
                _log.exception("loop_failed", loop=self._name)
            else:
                self.moved_at = asyncio.get_running_loop().time()
                wait_s = FAILED_WAIT_S
                continue
            await asyncio.sleep(wait_s * (0.5 + random.random()))
            wait_s = min(wait_s * 2, FAILED_WAIT_MAX_S)
