"""An HTTP simulator's server: loopback only, stops at once, and can break a connection on request."""

import asyncio
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import msgspec
import uvicorn
from uvicorn.server import ServerState

HOST = "127.0.0.1"
BODY_MAX = 64 << 20

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Request:
    """One request. `headers` by lower-case name."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self._receive = receive
        self._send = send

    async def read(self) -> bytes | None:
        """The body; None when it is over BODY_MAX or the client went away."""
        body = bytearray()
        while True:
            event = await self._receive()
            if event["type"] != "http.request":
                return None
            body += event.get("body", b"")
            if len(body) > BODY_MAX:
                return None
            if not event.get("more_body"):
                return bytes(body)

    async def reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
        lines = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        lines.append((b"content-length", str(len(body)).encode()))
        await self._send({"type": "http.response.start", "status": status, "headers": lines})
        await self._send({"type": "http.response.body", "body": body})

    async def until_gone(self) -> None:
        """Hang: return when the connection is gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def abort(self) -> None:
        """Reset the connection (RST), whatever has been read of it."""
        # ASGI has no word for it; `send` is a method of uvicorn's object for this exchange.
        transport: asyncio.Transport = self._send.__self__.transport  # type: ignore[attr-defined]
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
        await self.until_gone()


@asynccontextmanager
async def serving(app: App, port: int = 0) -> AsyncIterator[str]:
    """Serve `app` while the block runs; yields its base URL. Port 0 is any free one."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
    )
    config.load()
    state = ServerState()
    protocol: Any = config.http_protocol_class
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: protocol(config=config, server_state=state, app_state={}), HOST, port
    )
    try:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        running = list(state.tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()


async def serve_until_signal(app: App, port: int) -> None:
    """Serve until SIGINT or SIGTERM; prints `{"url": …, "port": …}` on one line as soon as it listens."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serving(app, port) as url:
        line = msgspec.json.encode({"url": url, "port": int(url.rpartition(":")[2])})
        sys.stdout.write(line.decode() + "\n")
        sys.stdout.flush()
        await stop.wait()
