"""Waiting for what gives no event: another process's state, asked for until it is so."""

import asyncio
from collections.abc import Awaitable, Callable

BOUND_S = 20.0


async def eventually(is_so: Callable[[], Awaitable[object]]) -> None:
    """Return once it is so; TimeoutError after BOUND_S. Asking must take a round trip."""
    async with asyncio.timeout(BOUND_S):
        while not await is_so():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0)
