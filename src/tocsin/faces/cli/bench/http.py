"""HTTP/1.1 as the load generator and its fake provider speak it: keep-alive, one message at a time, cheap."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar, cast
from urllib.parse import urlsplit

from msgspec import Struct

from tocsin.faces.cli.bench.spoiled import Spoiled

#: Of one answer: more than any commit takes.
ANSWER_S: Final = 60.0

T = TypeVar("T")

_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Message(Struct, frozen=True):
    """A request or an answer: its head as it came, and its body."""

    head: bytes
    body: bytes

    @property
    def status(self) -> int:
        """Of an answer."""
        return int(self.head[9:12])


class Messages:
    """Puts messages together out of what arrives."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are whole by now."""
        self._rest += data
        while (end := self._rest.find(_END)) >= 0:
            head = self._rest[:end]
            length = _LENGTH.search(head)
            start = end + len(_END)
            stop = start + (int(length[1]) if length else 0)
            if len(self._rest) < stop:
                return
            body = self._rest[start:stop]
            self._rest = self._rest[stop:]
            yield Message(head, body)


class Trip(Struct, frozen=True):
    """One request and its answer; seconds of the performance counter."""

    began: float
    ended: float
    answer: Message

    @property
    def ms(self) -> float:
        return (self.ended - self.began) * 1e3


Told = Callable[[Trip | Spoiled], None]


class Line(asyncio.Protocol):
    """One connection; one request at a time. No task, no future: the load must cost little."""

    __slots__ = ("_began", "_messages", "_told", "_transport")

    def __init__(self) -> None:
        self._messages = Messages()
        self._told: Told | None = None
        self._began = 0.0
        self._transport: asyncio.Transport | None = None

    def send(self, request: bytes, told: Told) -> None:
        """`told` is called once, with the trip if it succeeded."""
        assert self._transport is not None
        self._told = told
        self._began = time.perf_counter()
        self._transport.write(request)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        for message in self._messages.feed(data):
            ended = time.perf_counter()
            if message.status == 200:
                self._tell(Trip(self._began, ended, message))
            else:
                said = message.body[:500].decode(errors="replace")
                self._tell(Spoiled(f"a request was answered {message.status}: {said}"))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        self._tell(Spoiled("a request got no answer: its connection was closed"))

    def _tell(self, found: Trip | Spoiled) -> None:
        told, self._told = self._told, None
        if told is not None:
            told(found)


def post(url: str, path: str, key: str, body: bytes) -> bytes:
    """A whole request."""
    host, port = address_of(url)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {host}:{port}\r\nx-api-key: {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def address_of(url: str) -> tuple[str, int]:
    """Host and port of an address that names both."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


@asynccontextmanager
async def lines(url: str, count: int) -> AsyncIterator[list[Line]]:
    """That many open connections."""
    host, port = address_of(url)
    loop = asyncio.get_running_loop()
    opened: list[Line] = []
    try:
        for _ in range(count):
            _, line = await loop.create_connection(Line, host, port)
            opened.append(line)
        yield opened
    finally:
        for line in opened:
            line.close()


async def ask(line: Line, request: bytes) -> Trip:
    """One request that must succeed."""
    [trip] = await _answered([line], [request], lambda trip: trip, ANSWER_S)
    return trip


async def ask_all(opened: Sequence[Line], requests: Sequence[bytes]) -> list[float]:
    """Every request, each line with the next one as soon as it has its answer; ms of each."""
    return await _answered(
        opened, requests, lambda trip: trip.ms, ANSWER_S + len(requests) * ANSWER_S / 1_000
    )


async def _answered(
    opened: Sequence[Line], requests: Sequence[bytes], kept: Callable[[Trip], T], bound_s: float
) -> list[T]:
    """What is kept of every trip, in the order of the answers."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = iter(requests)
    found: list[T] = []

    def go_on(line: Line) -> None:
        request = next(waiting, None)
        if request is not None:
            line.send(request, lambda trip: take(line, trip))

    def take(line: Line, trip: Trip | Spoiled) -> None:
        if done.done():
            return
        if isinstance(trip, Spoiled):
            done.set_exception(trip)
            return
        found.append(kept(trip))
        if len(found) == len(requests):
            done.set_result(None)
        else:
            go_on(line)

    for line in opened:
        go_on(line)
    try:
        async with asyncio.timeout(bound_s):
            await done
    except TimeoutError:
        missing = len(requests) - len(found)
        raise Spoiled(f"{missing} requests got no answer within {bound_s:.0f} s") from None
    return found
