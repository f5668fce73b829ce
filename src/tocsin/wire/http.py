"""HTTP to the outside: one pooled client; what came back, or how it failed, as a value.

The one place that imports the HTTP library (pyqwest, which sits on Rust's reqwest). A call has three ends:

Reply        an answer came, whatever its status
Unreachable  the connection was never made, so nothing of the request left: trying again is safe
NoAnswer     bytes may have left and no whole answer came: it may or may not have been done

Only what certainly failed before the request was written is Unreachable; all doubt is NoAnswer (law 6).
Names, addresses and texts of the library's errors contain the URL, so none of them is passed on.
"""

import asyncio
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from pyqwest import (
    Headers,
    HTTPTransport,
    ReadError,
    RemoteProtocolError,
    Request,
    Response,
    WriteError,
)

from tocsin import __version__

CONNECT_TIMEOUT_S = 10.0
#: A connection rests this long at most: shorter than what servers allow, so that we close first and
#: do not write a request into a connection that the other side is just closing.
POOL_IDLE_S = 20.0
POOL_IDLE_MAX = 64
REPLY_BODY_MAX = 1 << 20
USER_AGENT = f"Tocsin/{__version__}"


class Reply(Struct, frozen=True):
    """An answer. `headers` by lower-case name; `complete` is false when `body` was cut at the limit."""

    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool = True

    def header(self, name: str) -> str | None:
        """A header by name in any case; several of one name are joined by a comma (RFC 9110 §5.3)."""
        return self.headers.get(name.lower())


class Unreachable(Struct, frozen=True):
    """No connection, so nothing left."""

    code: Literal["refused", "dns", "tls", "connect_timeout", "unreachable"]


class NoAnswer(Struct, frozen=True):
    """Bytes may have left. `status` is set when the head of an answer came and its body did not."""

    code: Literal["timeout", "reset", "broken_reply"]
    status: int | None = None


class HttpClient:
    """A pool of connections, HTTP/2 where the server offers it (ALPN), redirects never followed.

    connect_timeout_s: name, TCP and TLS together. ca_pem: certificates trusted besides the system's.
    HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment are heeded.
    """

    def __init__(
        self,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        reply_body_max: int = REPLY_BODY_MAX,
        ca_pem: bytes | None = None,
    ) -> None:
        self._reply_body_max = reply_body_max
        self._closed = False
        self._transport = HTTPTransport(
            tls_ca_cert=ca_pem,
            tls_include_system_certs=True,
            connect_timeout=connect_timeout_s,
            pool_idle_timeout=POOL_IDLE_S,
            pool_max_idle_per_host=POOL_IDLE_MAX,
            # A small body that unpacks to a large one has no use here.
            enable_gzip=False,
            enable_brotli=False,
            enable_zstd=False,
            follow_redirects=False,
            enable_otel=False,
        )

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        timeout_s: float,
    ) -> Reply | Unreachable | NoAnswer:
        """One request, tried once. `timeout_s` bounds everything from the name to the last byte.

        Raises ValueError for a URL or a header that cannot be sent at all; check them where they come in.
        """
        if not url.startswith(("http://", "https://")):
            raise ValueError("the URL must begin with http:// or https://")
        if self._closed:
            raise RuntimeError("request on a closed HttpClient")
        lines = Headers(headers.items())
        lines.setdefault("user-agent", USER_AGENT)
        request = Request(method, url, lines, body)
        answer: Response | None = None
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._transport.execute(request)
                return await self._read(answer)
        # Every failure to connect, and nothing else, is a ConnectionError of `execute`.
        except ConnectionError as error:
            return _unreachable(error) if answer is None else _no_answer("reset", answer)
        except TimeoutError:
            return _no_answer("timeout", answer)
        except (ReadError, WriteError):
            return _no_answer("reset", answer)
        except (RemoteProtocolError, RuntimeError):
            return _no_answer("broken_reply", answer)

    async def aclose(self) -> None:
        """Close the pool; nothing may be in flight."""
        self._closed = True
        await self._transport.aclose()

    async def _read(self, answer: Response) -> Reply:
        headers = _joined(answer.headers)
        length = headers.get("content-length", "")
        expected = int(length) if length.isascii() and length.isdigit() else None
        limit = self._reply_body_max
        body = bytearray()
        # Stopping at the announced length saves the wait for an end that is known already.
        if expected != 0:
            async for chunk in answer.content:
                body += chunk
                if len(body) > limit or len(body) == expected:
                    break
        complete = len(body) <= limit
        if not complete:
            await answer.aclose()
        return Reply(answer.status, headers, bytes(body[:limit]), complete)


def _joined(headers: Headers) -> dict[str, str]:
    lines: dict[str, str] = {}
    for name, value in headers.items():
        lines[name] = f"{lines[name]}, {value}" if name in lines else value
    return lines


def _no_answer(
    code: Literal["timeout", "reset", "broken_reply"], answer: Response | None
) -> NoAnswer:
    return NoAnswer(code, None if answer is None else answer.status)


def _unreachable(error: ConnectionError) -> Unreachable:
    if isinstance(error, TimeoutError):
        return Unreachable("connect_timeout")
    # The library has one class for all of them; its text says which, after the URL.
    cause = str(error).rpartition("(Connect): ")[2].lower()
    if "dns error" in cause:
        return Unreachable("dns")
    if "certificate" in cause or "tls" in cause or "handshake" in cause or "alert" in cause:
        return Unreachable("tls")
    if "refused" in cause:
        return Unreachable("refused")
    return Unreachable("unreachable")
