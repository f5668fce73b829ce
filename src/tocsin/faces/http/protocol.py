"""The wire below ASGI: uvicorn's protocol, with bounds on the head of a request and on its arrival."""

import asyncio
import os
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tocsin.domain.errors import Malformed, TocsinError
from tocsin.faces.http import problems
from tocsin.faces.http.joined import JoinedTransport

HEAD_BYTES_MAX: Final = 64 * 1024
#: For the head of a request, and for the first byte of a new connection.
HEAD_TIMEOUT_S: Final = 20.0

_PHRASES: Final = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
}


class HeadTooLarge(TocsinError):
    status = 431


class BoundedProtocol(HttpToolsProtocol):
    """One connection. A head that is too large or too slow ends it."""

    _in_head = True
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(JoinedTransport(transport))  # type: ignore[arg-type]
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_head:
            if self._head_timer is not None:
                self._head_came()
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self._refuse(
                HeadTooLarge(
                    "head_too_large",
                    f"The request's head is larger than {HEAD_BYTES_MAX // 1024} KiB",
                    remedy="send less in headers and address",
                )
            )
        elif self._head_timer is None:
            self._await_head()

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Malformed("malformed_http", msg, remedy="send a request as RFC 9112 says"))

    def _await_head(self) -> None:
        self._head_timer = asyncio.get_running_loop().call_later(HEAD_TIMEOUT_S, self._late)

    def _head_came(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _late(self) -> None:
        self._refuse(
            problems.RequestTimeout(
                "head_timeout",
                f"No request arrived within {HEAD_TIMEOUT_S:.0f} seconds",
                remedy="open a connection when there is something to ask",
            )
        )

    def _refuse(self, error: TocsinError) -> None:
        self._head_came()
        if self.transport.is_closing():
            return
        answer = problems.answer(error, os.urandom(8).hex())
        head = [f"HTTP/1.1 {answer.status} {_PHRASES[answer.status]}"]
        head += [f"{name}: {value}" for name, value in answer.headers if name != "connection"]
        head += [f"content-length: {len(answer.body)}", "connection: close", "", ""]
        self.transport.write("\r\n".join(head).encode("latin-1") + answer.body)
        self.transport.close()
