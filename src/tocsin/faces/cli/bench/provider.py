"""A provider of the bench's own: takes mail as Resend does, and notes when the first byte of each call came."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec

from tocsin.faces.cli.bench.http import Message, Messages
from tocsin.faces.cli.bench.trips import Arrivals


class Connection(asyncio.Protocol):
    """One connection of the worker."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._messages = Messages()
        self._began = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._began = self._began or time.perf_counter()
        for message in self._messages.feed(data):
            self._answer(message)
            self._began = 0.0

    def _answer(self, message: Message) -> None:
        assert self._transport is not None
        mails: Any = msgspec.json.decode(message.body)
        several = isinstance(mails, list)
        for mail in mails if several else [mails]:
            self._arrivals.note(mail["to"][0], self._began)
        taken = {"data": [{"id": "bench"} for _ in mails]} if several else {"id": "bench"}
        body = msgspec.json.encode(taken)
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


@asynccontextmanager
async def provider(arrivals: Arrivals) -> AsyncIterator[str]:
    """A running provider on the loopback; its base URL. Arrivals are named by the recipient."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(arrivals), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
