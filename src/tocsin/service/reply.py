"""A reply that is bytes already: what was stored under a key is answered again, byte for byte."""

from msgspec import Struct


class Reply(Struct, frozen=True):
    """A JSON body. replayed: it is the answer to an earlier request with the same idempotency key."""

    body: bytes
    status: int = 200
    replayed: bool = False
