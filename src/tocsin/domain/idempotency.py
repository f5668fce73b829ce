"""Idempotency: digests of keys and of requests, with lengths inside so that no two ever meet."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

DIGEST_BYTES: Final = 16


def digest(scope: str, key: str, *parts: str) -> bytes:
    """The digest of one key of one scope (`send`, `batch`) about these parts (subscriber, channel)."""
    mark = blake2b(digest_size=DIGEST_BYTES)
    for part in (scope, key, *parts):
        raw = part.encode("utf-8", "surrogatepass")
        mark.update(b"%d:" % len(raw))
        mark.update(raw)
    return mark.digest()


def digests(scope: str, key: str, firsts: Sequence[str], second: str) -> list[bytes]:
    """`digest(scope, key, first, second)` of many, the shared start hashed once."""
    start = blake2b(digest_size=DIGEST_BYTES)
    for part in (scope, key):
        raw = part.encode("utf-8", "surrogatepass")
        start.update(b"%d:%b" % (len(raw), raw))
    tail = second.encode("utf-8", "surrogatepass")
    end = b"%d:%b" % (len(tail), tail)
    made = []
    for first in firsts:
        raw = first.encode("utf-8", "surrogatepass")
        mark = start.copy()
        mark.update(b"%d:%b%b" % (len(raw), raw, end))
        made.append(mark.digest())
    return made


def fingerprint(body: bytes) -> bytes:
    """Of a request's canonical bytes: the same request, the same fingerprint."""
    return blake2b(body, digest_size=DIGEST_BYTES).digest()
