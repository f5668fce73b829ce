"""One request and its answer, as the raw routes see them."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from msgspec import Struct

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
#: Of a response: (lower-case name, value).
Headers = tuple[tuple[str, str], ...]
#: Of a request: by lower-case name; of one that is sent twice the last.
RawHeaders = Mapping[bytes, bytes]

JSON = ("content-type", "application/json")


class Request(Struct, frozen=True):
    """What a raw route gets; the body is read by it, after it knows who asks."""

    scope: Scope
    receive: Receive
    id: str
    headers: RawHeaders

    def header(self, name: bytes) -> str | None:
        """The header of this lower-case name."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class Answer(Struct, frozen=True):
    """A whole response. The body's type is among the headers."""

    status: int
    body: bytes
    headers: Headers = ()


Route = Callable[[Request], Awaitable[Answer]]


def encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI wants them."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


async def respond(send: Send, answer: Answer, extra: list[tuple[bytes, bytes]]) -> None:
    """Send an answer with more headers."""
    head = [*encoded(answer.headers), *extra, (b"content-length", b"%d" % len(answer.body))]
    await send({"type": "http.response.start", "status": answer.status, "headers": head})
    await send({"type": "http.response.body", "body": answer.body})
