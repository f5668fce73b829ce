"""Together: several pieces of work side by side, of which none outlives the others' failure."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results, in order; the first failure ends the rest and is raised as it is."""
    tasks = [asyncio.create_task(piece) for piece in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
