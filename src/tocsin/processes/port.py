"""Port: a listening socket on the address that was asked for, or on the next free port."""

import errno
import socket
from typing import Final

from tocsin.domain.errors import Conflict, Invalid, TocsinError
from tocsin.faces.http.server import listen

#: Ports tried from the first on, when any will do.
TRIES: Final = 100
_LAST: Final = 65_535


def open_port(host: str, port: int, *, others: bool = False) -> socket.socket:
    """Listen; with `others`, on the first free port from `port` on, at last on any.

    Port 0 is any free one. Raises Conflict when the port is taken, Invalid when the address is not ours.
    """
    wanted = [port]
    if others and port:
        wanted = [*range(port, min(port + TRIES, _LAST + 1)), 0]
    for candidate in wanted:
        try:
            return listen(host, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise _refused(host, candidate, error) from None
    raise Conflict(
        "port_in_use",
        f"port {port} of {host} is in use",
        remedy="stop what listens there, or choose another with --port",
    )


def address_of(bound: socket.socket) -> tuple[str, int]:
    """The host and port that a socket listens on."""
    host, port = bound.getsockname()[:2]
    return host, port


def url_of(bound: socket.socket) -> str:
    """How a browser on this machine reaches it."""
    host, port = address_of(bound)
    if host in ("0.0.0.0", "::"):  # noqa: S104 - read, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _refused(host: str, port: int, error: OSError) -> TocsinError:
    if error.errno == errno.EACCES:
        return Conflict(
            "port_forbidden",
            f"this user may not listen on port {port}",
            remedy="choose a port from 1024 on with --port",
        )
    return Invalid(
        "address_not_ours",
        f"cannot listen on {host}: {error.strerror or 'unknown host'}",
        remedy="use an address of this machine with --host, such as 127.0.0.1 or 0.0.0.0",
    )
