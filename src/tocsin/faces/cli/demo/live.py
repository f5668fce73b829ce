"""Live: a client of an inbox's event stream, as small as a browser's EventSource (WHATWG HTML §9.2)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from tocsin.faces.cli.demo.missed import Missed

EVENT_S: Final = 20.0


class Stream:
    """Events as they come; each is (id or None, its data)."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._rest = b""

    async def event(self, kind: str) -> dict[str, Any]:
        """The next event of a type; others are passed over."""
        try:
            async with asyncio.timeout(EVENT_S):
                while True:
                    data = await self._next()
                    if data.get("type") == kind:
                        return data
        except (TimeoutError, asyncio.IncompleteReadError):
            raise Missed(f"no {kind} event came within {EVENT_S:.0f} s") from None

    async def _next(self) -> dict[str, Any]:
        while True:
            frame, found, rest = self._rest.partition(b"\n\n")
            if not found:
                self._rest += await self._chunk()
                continue
            self._rest = rest
            for line in frame.split(b"\n"):
                if line.startswith(b"data: "):
                    decoded: dict[str, Any] = msgspec.json.decode(line[6:])
                    return decoded

    async def _chunk(self) -> bytes:
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        return (await self._reader.readexactly(size + 2))[:-2]


@asynccontextmanager
async def listening(url: str, subscriber: str, ticket: str) -> AsyncIterator[Stream]:
    """A connected stream while the block runs."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        target = f"/v1/inbox/{quote(subscriber, safe='')}/stream?ticket={quote(ticket, safe='')}"
        asked = (
            f"GET {target} HTTP/1.1\r\nhost: {address.netloc}\r\naccept: text/event-stream\r\n\r\n"
        )
        writer.write(asked.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            status = head.partition(b"\r\n")[0].decode(errors="replace")
            raise Missed(f"the stream was answered {status}")
        yield Stream(reader)
    finally:
        writer.close()
