"""The private PostgreSQL watched: when it ends and nobody stopped it, it is started again."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import structlog

from tocsin.domain.errors import Unavailable
from tocsin.store.devserver import DevServer

#: How soon an end is noticed.
LOOK_S: Final = 0.2
#: A server that ends again and again within that time is not started once more.
RESTARTS_MAX: Final = 5
RESTARTS_S: Final = 60.0

_log = structlog.get_logger()


@asynccontextmanager
async def kept_running(server: DevServer, on_lost: Callable[[], None]) -> AsyncIterator[None]:
    """Start it again whenever it ends while the block runs. Call it from the thread that started it.

    Where that cannot be done `on_lost()` is called, and leaving the block raises why.
    """
    watching = asyncio.create_task(_watch(server), name="devserver")
    watching.add_done_callback(lambda task: None if task.cancelled() else on_lost())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    if not watching.cancelled() and (error := watching.exception()) is not None:
        raise error


async def _watch(server: DevServer) -> None:
    loop = asyncio.get_running_loop()
    ends: deque[float] = deque(maxlen=RESTARTS_MAX)
    while True:
        while not server.has_ended:  # noqa: ASYNC110 - a process gives no event everywhere
            await asyncio.sleep(LOOK_S)
        _log.error("devserver.ended", data_dir=str(server.data_dir), pid=server.pid)
        if len(ends) == RESTARTS_MAX and loop.time() - ends[0] < RESTARTS_S:
            raise Unavailable(
                "postgres_keeps_ending",
                f"PostgreSQL ended {RESTARTS_MAX + 1} times within {RESTARTS_S:.0f} s; "
                f"{server.data_dir / 'postgres.log'} says why",
                remedy="correct what the log says and start again; the data is kept",
            )
        ends.append(loop.time())
        await server.restart()
