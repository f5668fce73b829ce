"""Trips: the latency of things that happen one at a time, spaced apart so that nothing is warm by chance."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from tocsin.faces.cli.bench.spoiled import Spoiled

#: The pause between two: random, so that it beats in time with no poll.
PAUSE_S: Final = (0.03, 0.17)
ARRIVAL_S: Final = 15.0


async def spaced(count: int, trip: Callable[[int], Awaitable[float]]) -> list[float]:
    """How long each trip took, in ms; `trip` is given its number and returns seconds."""
    took_ms: list[float] = []
    for number in range(count):
        await asyncio.sleep(random.uniform(*PAUSE_S))
        took_ms.append(await trip(number) * 1e3)
    return took_ms


@asynccontextmanager
async def bounded(what: str) -> AsyncIterator[None]:
    """Whatever is waited for has to come."""
    try:
        async with asyncio.timeout(ARRIVAL_S):
            yield
    except TimeoutError:
        raise Spoiled(f"{what} did not come within {ARRIVAL_S:.0f} s") from None


class Arrivals:
    """Names and the moment each was first seen, by the performance counter."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._awaited: dict[str, asyncio.Event] = {}

    def note(self, name: str, at: float | None = None) -> None:
        """It is here."""
        self._at.setdefault(name, time.perf_counter() if at is None else at)
        if name in self._awaited:
            self._awaited[name].set()

    async def of(self, name: str) -> float:
        """When it came; the caller bounds the wait."""
        if name not in self._at:
            event = self._awaited.setdefault(name, asyncio.Event())
            await event.wait()
        return self._at[name]
