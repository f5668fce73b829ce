"""HTTP/1.1 spoken by hand over a real socket, to see exactly what a server does."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

import msgspec
from msgspec import Struct

BOUND_S = 15.0


class Event(Struct, frozen=True):
    """One server-sent event, or with a comment and nothing else one ping."""

    id: str | None
    data: Any
    comment: str | None = None
    retry: str | None = None


class Exchange:
    """One connection: send bytes, read a response's head, then its body as it comes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._text = b""
        self.status = 0
        self.headers: dict[str, str] = {}

    @classmethod
    async def open(cls, port: int) -> Self:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> None:
        """Send a whole request and read the head of its answer."""
        lines = [f"{method} {path} HTTP/1.1", "host: test"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body:
            lines.append(f"content-length: {len(body)}")
        await self.send("\r\n".join([*lines, "", ""]).encode() + body)
        await self.read_head()

    async def read_head(self) -> None:
        async with asyncio.timeout(BOUND_S):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *rest = head.strip().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
        }

    async def body(self) -> bytes:
        async with asyncio.timeout(BOUND_S):
            return await self._reader.readexactly(int(self.headers["content-length"]))

    async def ended(self) -> bool:
        """Whether the server closes the connection, within the bound."""
        async with asyncio.timeout(BOUND_S):
            return await self._reader.read() == b""

    async def _chunk(self) -> bytes | None:
        async with asyncio.timeout(BOUND_S):
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            data = await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        return data or None

    async def events(self) -> AsyncIterator[Event]:
        """The events of a chunked stream, pings and retry included, until it ends."""
        while True:
            while b"\n\n" in self._text:
                block, _, self._text = self._text.partition(b"\n\n")
                yield _event(block.decode())
            data = await self._chunk()
            if data is None:
                return
            self._text += data

    async def next(self) -> Event:
        """The next event that carries data."""
        async for event in self.events():
            if event.data is not None:
                return event
        raise EOFError

    async def close(self) -> None:
        self._writer.close()


def _event(block: str) -> Event:
    fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
    comment = next((line[1:].strip() for line in block.splitlines() if line[0] == ":"), None)
    data = fields.get("data")
    return Event(
        fields.get("id"),
        None if data is None else msgspec.json.decode(data),
        comment,
        fields.get("retry"),
    )


@asynccontextmanager
async def exchange(port: int) -> AsyncIterator[Exchange]:
    made = await Exchange.open(port)
    try:
        yield made
    finally:
        await made.close()
