"""Listeners: many browsers in one process, each with an open inbox stream (WHATWG HTML §9.2), as small as can be."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, cast

from tocsin.faces.cli.bench.http import address_of
from tocsin.faces.cli.bench.spoiled import Spoiled
from tocsin.faces.cli.bench.together import together
from tocsin.faces.cli.bench.trips import Arrivals

#: Connections that are opened at one time.
WAVE: Final = 100
OPEN_S: Final = 60.0

_FRAME_END: Final = b"\n\n"
_NEW: Final = re.compile(
    rb'data: \{"type":"new_notification","notification":\{"id":"([0-9a-f-]{36})"'
)


class Listener(asyncio.Protocol):
    """One stream. `placed` is set by its first event: from then on it misses nothing."""

    __slots__ = ("_arrivals", "_request", "_rest", "_transport", "placed")

    def __init__(self, request: bytes, arrivals: Arrivals) -> None:
        self._request = request
        self._arrivals = arrivals
        self._rest = b""
        self._transport: asyncio.Transport | None = None
        self.placed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        at = time.perf_counter()
        whole, _, self._rest = (self._rest + data).rpartition(_FRAME_END)
        if not self.placed.done():
            self._place(whole)
        for found in _NEW.finditer(whole):
            self._arrivals.note(found[1].decode(), at)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        if not self.placed.done():
            self.placed.set_exception(Spoiled("a stream was closed before its first event"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _place(self, whole: bytes) -> None:
        if whole and not whole.startswith(b"HTTP/1.1 200 "):
            status = whole.partition(b"\r\n")[0].decode(errors="replace")
            self.placed.set_exception(Spoiled(f"a stream was answered {status}"))
        elif b'"type":"count_update"' in whole:
            self.placed.set_result(None)
        elif whole:
            # The head and the retry line came alone.
            self._rest = whole + _FRAME_END + self._rest


@asynccontextmanager
async def listening(url: str, key: str, count: int, arrivals: Arrivals) -> AsyncIterator[None]:
    """`count` open streams, of `user-1` and on; all of them have had their first event."""
    host, port = address_of(url)
    loop = asyncio.get_running_loop()
    opened: list[Listener] = []

    async def connect(number: int) -> None:
        request = (
            f"GET /v1/inbox/user-{number}/stream HTTP/1.1\r\nhost: {host}:{port}\r\n"
            f"x-api-key: {key}\r\naccept: text/event-stream\r\n\r\n"
        ).encode()
        _, listener = await loop.create_connection(lambda: Listener(request, arrivals), host, port)
        opened.append(listener)
        await listener.placed

    try:
        try:
            async with asyncio.timeout(OPEN_S + count / WAVE):
                for start in range(1, count + 1, WAVE):
                    numbers = range(start, min(start + WAVE, count + 1))
                    await together(map(connect, numbers))
        except TimeoutError:
            raise Spoiled(f"only {len(opened)} of {count} streams came to be open") from None
        yield
    finally:
        for listener in opened:
            listener.close()
