"""Cross-origin requests: the same answer on raw and framework routes (Fetch standard §3.2)."""

from collections.abc import Sequence
from typing import Final

from litestar.config.cors import CORSConfig

from tocsin.faces.http.exchange import Answer, RawHeaders

_REQUEST_HEADERS: Final = [
    "authorization", "content-type", "idempotency-key", "last-event-id", "x-api-key",
    "x-request-id",
]  # fmt: skip
_EXPOSED: Final = [
    "idempotent-replayed", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset",
    "retry-after", "x-request-id",
]  # fmt: skip


class Cors:
    """Allows the configured origins; without any, browsers of other origins are refused."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._config = CORSConfig(
            allow_origins=list(origins), allow_headers=_REQUEST_HEADERS, expose_headers=_EXPOSED
        )
        self._any = "*" in origins
        self._exposed = ", ".join(_EXPOSED).encode()

    def headers(self, headers: RawHeaders) -> list[tuple[bytes, bytes]]:
        """What the answer to a request with these headers carries."""
        origin = headers.get(b"origin")
        if origin is None or not self._config.is_origin_allowed(origin.decode("latin-1")):
            return []
        return [
            (b"access-control-allow-origin", b"*" if self._any else origin),
            (b"access-control-expose-headers", self._exposed),
            (b"vary", b"Origin"),
        ]

    def preflight(self, headers: RawHeaders) -> Answer | None:
        """The answer to a preflight; None when it is none, or from an origin that is not allowed."""
        if b"access-control-request-method" not in headers or not self.headers(headers):
            return None
        told = self._config.preflight_headers.items()
        skipped = ("access-control-allow-origin", "vary")
        pairs = tuple((k.lower(), v) for k, v in told if k.lower() not in skipped)
        return Answer(204, b"", pairs)
