"""What one reader has been hinted about since it last looked: a bounded set of names."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from msgspec import Struct

# Past this a reader is told to look at everything: cheaper than a longer list for both sides.
NAMES_MAX = 10_000


class Heard(Struct, frozen=True):
    """Names hinted since the last wait; `everything` after any doubt, and then names is empty.

    False (no names, not everything) when the wait timed out.
    """

    names: frozenset[str] = frozenset()
    everything: bool = False

    def __bool__(self) -> bool:
        return self.everything or bool(self.names)


EVERYTHING = Heard(everything=True)
NOTHING = Heard()


class Subscription:
    """Made by Notifier.subscribe; one reader at a time."""

    def __init__(self, close: Callable[["Subscription"], None]) -> None:
        self._close = close
        self._names: set[str] = set()
        self._everything = False
        self._waiter: asyncio.Future[None] | None = None

    def tell(self, name: str | None) -> None:
        """Note one name, or None for everything, and wake the reader."""
        if name is None or len(self._names) >= NAMES_MAX:
            self._everything = True
            self._names.clear()
        elif not self._everything:
            self._names.add(name)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take(self) -> Heard:
        """What has been heard, at once; it is forgotten here."""
        if self._everything:
            self._everything = False
            return EVERYTHING
        if not self._names:
            return NOTHING
        names, self._names = self._names, set()
        return Heard(frozenset(names))

    async def wait(self, timeout_s: float) -> Heard:
        """What has been heard; waits up to timeout_s for the first name, then gives NOTHING."""
        if not self._everything and not self._names:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._waiter
            except TimeoutError:
                pass
            finally:
                self._waiter = None
        return self.take()

    def close(self) -> None:
        """Hear nothing more."""
        self._close(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
