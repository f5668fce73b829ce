"""Signals: the first SIGINT or SIGTERM stops in good order, the second at once."""

import asyncio
import os
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

import structlog

#: Two signals closer together are one: `timeout` and others send to the process and to its group.
TOGETHER_S: Final = 0.5

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)

_log = structlog.get_logger()


class Signals:
    """`stop` is set by the first signal once `started` was called; before that, the task is cancelled.

    on_force: what must still be done when a second signal ends the process without waiting.
    """

    def __init__(self, on_force: Callable[[], None] = lambda: None) -> None:
        self.stop = asyncio.Event()
        self.received: signal.Signals | None = None
        self.on_force = on_force
        self._received_at = 0.0
        self._started = False
        self._task: asyncio.Task[object] | None = None

    def started(self) -> None:
        """From here on `stop` is waited for."""
        self._started = True

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in _STOPPING:
            loop.add_signal_handler(number, self._handle, number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        loop = asyncio.get_running_loop()
        for number in _STOPPING:
            loop.remove_signal_handler(number)
        # A start that was called off has undone what it had done.
        return kind is asyncio.CancelledError and self.received is not None

    def _handle(self, number: signal.Signals) -> None:
        now = asyncio.get_running_loop().time()
        if self.received is not None:
            if now - self._received_at < TOGETHER_S:
                return
            self.on_force()
            os._exit(128 + number)
        self.received, self._received_at = number, now
        _log.info("stopping", signal=number.name, again="stops at once")
        if self._started:
            self.stop.set()
        elif self._task is not None:
            self._task.cancel()
