"""An ASGI application called in this process: one request, one answer, no socket."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

Asgi = Callable[[Any, Any, Any], Awaitable[None]]


class Answered(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Client:
    """Calls with some headers always; `path` may contain a query string."""

    def __init__(self, app: Asgi, headers: Mapping[str, str] | None = None) -> None:
        self._app = app
        self._headers = dict(headers or {})

    def with_headers(self, **headers: str) -> "Client":
        """Another client; underscores become dashes."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return Client(self._app, self._headers | more)

    async def get(self, path: str, **headers: str) -> Answered:
        return await self.call("GET", path, None, **headers)

    async def delete(self, path: str, **headers: str) -> Answered:
        return await self.call("DELETE", path, None, **headers)

    async def post(self, path: str, body: Any = None, **headers: str) -> Answered:
        return await self.call("POST", path, body, **headers)

    async def put(self, path: str, body: Any, **headers: str) -> Answered:
        return await self.call("PUT", path, body, **headers)

    async def patch(self, path: str, body: Any, **headers: str) -> Answered:
        return await self.call("PATCH", path, body, **headers)

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answered:
        """body: bytes as they are, anything else as JSON, None for none."""
        raw = (
            b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        )
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"content-type": "application/json"} | self._headers | more
        route, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(route),
            "raw_path": quote(route, safe="/%:@!$&'()*+,;=~").encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        return await answered(self._app, scope, raw)


async def answered(app: Asgi, scope: Any, body: bytes) -> Answered:
    """Run one request whose body arrives whole."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return waiting.pop() if waiting else await asyncio.Future()

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(30):
        await app(scope, receive, send)
    headers = {k.decode(): v.decode("latin-1") for k, v in sent[0]["headers"]}
    return Answered(
        sent[0]["status"], headers, b"".join(part.get("body", b"") for part in sent[1:])
    )
