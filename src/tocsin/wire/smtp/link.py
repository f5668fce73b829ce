"""One TCP or TLS connection that carries SMTP: bytes out, whole replies in, every wait bounded.

It never raises for what the other side does: how it ended stands in `Link.ended`, and a caller who waited for
three replies and gets two knows that no third will come.
"""

import asyncio
import socket
from typing import Literal, cast

from tocsin.wire.smtp.replies import GarbledReplyError, Reply, ReplyReader

KEEPALIVE_IDLE_S = 30
KEEPALIVE_INTERVAL_S = 10
KEEPALIVE_PROBES = 3
UNACKNOWLEDGED_MS = 30_000
"""How long the kernel waits for a peer that acknowledges nothing: a vanished host, not a slow server."""

CHUNK = 1 << 18

End = Literal["closed", "reset", "timeout", "garbled", "aborted"]


class Link(asyncio.Protocol):
    """One user at a time: write, then await the replies."""

    def __init__(self) -> None:
        self.ended: End | None = None
        self.transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._reader = ReplyReader()
        self._replies: list[Reply] = []
        self._wanted = 0
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self._gone = self._loop.create_future()

    @property
    def quiet(self) -> bool:
        """Alive, and nothing has been said that nobody asked for."""
        return self.ended is None and not self._replies and self._reader.empty

    def write(self, data: bytes) -> None:
        if self.ended is None and self.transport is not None:
            self.transport.write(data)

    async def write_all(self, data: bytes, timeout_s: float) -> bool:
        """Write in chunks, each handed to the kernel within `timeout_s`.

        False if the link ended, or a reply came, before the last one was.
        """
        view = memoryview(data)
        for start in range(0, len(data), CHUNK):
            if self.ended is not None or self.transport is None:
                return False
            self.transport.write(view[start : start + CHUNK])
            while self._paused and self.ended is None:
                if self._replies:
                    return False
                await self._wait(timeout_s)
        return self.ended is None

    async def replies(self, count: int, timeout_s: float) -> list[Reply]:
        """The next `count` replies; fewer only if the link ended."""
        if len(self._replies) < count and self.ended is None:
            self._wanted = count
            await self._wait(timeout_s)
        found, self._replies = self._replies[:count], self._replies[count:]
        return found

    def abort(self, end: End = "aborted") -> None:
        """Drop the connection at once, whatever is still to be written."""
        self._end(end)
        if self.transport is not None:
            self.transport.abort()

    def close(self) -> None:
        """Close after what was written has left."""
        self._end("aborted")
        if self.transport is not None:
            self.transport.close()

    async def gone(self, timeout_s: float) -> None:
        """Wait until the socket is closed; drop it when `timeout_s` is over."""
        _, late = await asyncio.wait([self._gone], timeout=timeout_s)
        if late:
            self.abort()
            await self._gone

    async def _wait(self, timeout_s: float) -> None:
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_later(timeout_s, self.abort, "timeout")
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end(self, end: End) -> None:
        if self.ended is None:
            self.ended = end
        self._wake()

    # ------------------------------------------------------------------ called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Also called by the session when TLS has wrapped the first transport in another."""
        self.transport = cast("asyncio.Transport", transport)
        # `_paused` is then "not all of it has been handed on". With 0 asyncio's TLS transport would
        # stay paused with nothing to hand on.
        self.transport.set_write_buffer_limits(high=1, low=0)
        _guard(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        try:
            self._replies += self._reader.feed(data)
        except GarbledReplyError:
            self.abort("garbled")
            return
        if len(self._replies) >= self._wanted:
            self._wanted = 0
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("reset" if exc else "closed")
        if not self._gone.done():
            self._gone.set_result(None)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if not self._wanted:
            self._wake()


def _guard(connection: socket.socket | None) -> None:
    """Have the kernel notice a peer that vanished, long before the ten minutes of a final dot are over."""
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        ("TCP_USER_TIMEOUT", UNACKNOWLEDGED_MS),
    ):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
