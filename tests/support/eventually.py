"""Waiting for what gives no event: another process's state, asked for until it is so."""

import asyncio
from collections.abc import Awaitable, Callable

BOUND_S = 20.0


async def eventually(is_so: Callable[[], Awaitable[object]], *, within_s: float = BOUND_S) -> None:
    """Return once it is so; TimeoutError after within_s. Asking must take a round trip."""
    async with asyncio.timeout(within_s):
        while not await is_so():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0)
