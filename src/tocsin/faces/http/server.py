"""Server: uvicorn over a socket that the caller bound; stops without cutting anyone off."""

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn

from tocsin.faces.http.front import Front
from tocsin.faces.http.protocol import BoundedProtocol

BACKLOG: Final = 2_048
#: Streams and requests together; past it a connection is answered 503.
CONNECTIONS_MAX: Final = 25_000
KEEP_ALIVE_S: Final = 75
#: How long requests in progress may take after the stop; then they are cut off.
GRACE_S: Final = 10


class _Server(uvicorn.Server):
    """Leaves signals to the caller, who may run a worker beside it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises OSError, which is the caller's to decide."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        # At once: who connects before the server runs waits instead of being refused.
        bound.listen(BACKLOG)
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


async def serve(
    front: Front, bound: socket.socket, stop: asyncio.Event, *, grace_s: int = GRACE_S
) -> None:
    """Serve until `stop` is set; then end all streams, accept nothing, let requests finish."""
    config = uvicorn.Config(
        front,
        loop="none",
        http=BoundedProtocol,
        limit_concurrency=CONNECTIONS_MAX,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=grace_s,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[bound]), name="http server")
    stopping = asyncio.create_task(stop.wait(), name="http stop")
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        front.drain()
        server.should_exit = True
        await serving


def raise_open_files() -> int:
    """Let this process hold as many connections as the system permits; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
