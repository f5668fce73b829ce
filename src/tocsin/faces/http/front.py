"""Front: the ASGI application; request ids, CORS and raw routes before the framework."""

import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from tocsin.domain.errors import Malformed
from tocsin.faces.http import problems
from tocsin.faces.http.body import Disconnected, checked
from tocsin.faces.http.cors import Cors
from tocsin.faces.http.exchange import (
    Asgi,
    Message,
    RawHeaders,
    Receive,
    Request,
    Route,
    Scope,
    Send,
    respond,
)
from tocsin.faces.http.identity import Gate
from tocsin.faces.http.streams import Streams, is_stream

#: Stands for an encoded slash while the framework splits the path; a request cannot contain it.
SLASH: Final = "\0"
_NUL: Final = b"%00"
_SAFE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


def request_id(headers: RawHeaders) -> str:
    """The caller's own id if it is harmless in a log and a header, else a new one."""
    given = headers.get(b"x-request-id", b"").decode("latin-1")
    return given if _SAFE_ID.fullmatch(given) else os.urandom(8).hex()


class Front:
    """Serves; `start` and `stop` are its lifespan, `drain` the first step of a shutdown."""

    def __init__(
        self,
        framework: Asgi,
        raw: Mapping[tuple[str, str], Route],
        *,
        gate: Gate,
        streams: Streams,
        cors: Cors,
    ) -> None:
        self._gate = gate
        self._framework = framework
        self._raw = raw
        self._cors = cors
        self.streams = streams

    def drain(self) -> None:
        """End all streams at once: they would hold a graceful shutdown for ever."""
        self.streams.close()

    async def start(self) -> None:
        self.streams.start()

    async def stop(self) -> None:
        await self.streams.stop()
        self._gate.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: RawHeaders = dict(scope["headers"])
        request = Request(scope, receive, request_id(headers), headers)
        extra = [(b"x-request-id", request.id.encode()), *self._cors.headers(headers)]
        try:
            # The server sends no body for HEAD; everything else about it is GET's.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            route = self._raw.get((method, scope["path"]))
            if route is not None:
                answer = await route(request)
            elif scope["method"] == "GET" and is_stream(scope):
                await self.streams.serve(request, send, extra)
                return
            elif scope["method"] == "OPTIONS" and (found := self._cors.preflight(headers)):
                answer = found
            else:
                await self._framed(request, send, extra)
                return
        except Disconnected:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is becomes a problem document
            answer = problems.answer(error, request.id)
        await respond(send, answer, extra)

    async def _framed(self, request: Request, send: Send, extra: list[tuple[bytes, bytes]]) -> None:
        """Let the framework answer, with our headers on top."""
        scope = _framework_scope(request)

        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        await self._framework(scope, checked(request), add_headers)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _framework_scope(request: Request) -> Scope:
    scope = dict(request.scope)
    scope["state"] = dict(scope.get("state") or {}) | {"request_id": request.id}
    if scope["method"] == "HEAD":
        scope["method"] = "GET"
    raw: bytes = scope.get("raw_path") or b""
    if _NUL in raw or _NUL in scope["query_string"]:
        raise Malformed(
            "nul_character",
            "The address contains the character U+0000",
            remedy="leave it out",
        )
    if b"%2f" in raw.lower():
        text = re.sub("%2[fF]", "%00", raw.decode("latin-1"))
        scope["path"] = unquote(text)
    return scope


def unslashed(app: Asgi) -> Asgi:
    """Give handlers the slashes that were encoded in their path parameters."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        given = scope.get("path_params")
        if given:
            scope["path_params"] = {
                name: value.replace(SLASH, "/") if isinstance(value, str) else value
                for name, value in given.items()
            }
        await app(scope, receive, send)

    return call
