"""Identifiers: UUIDv7 (RFC 9562), made by Tocsin, sorted by the millisecond they were made in."""

import os
from datetime import UTC, datetime
from uuid import UUID

_VERSION = 0x7 << 76
_VARIANT = 0b10 << 62
_RANDOM_62 = (1 << 62) - 1


def uuid7(at: datetime) -> UUID:
    """One new id of the given (aware) time."""
    return uuid7s(at, 1)[0]


def uuid7s(at: datetime, count: int) -> list[UUID]:
    """`count` new ids of one time: a random start, then consecutive, so that they sort as made."""
    drawn = int.from_bytes(os.urandom(10), "big")
    base = (int(at.timestamp() * 1000) << 80) | _VERSION | ((drawn >> 68) << 64) | _VARIANT
    # Half the range at most, so that start + count never spills into the variant bits.
    start = (drawn & _RANDOM_62) >> 1
    return [UUID(int=base | (start + i)) for i in range(count)]


def time_of(value: UUID) -> datetime:
    """When a UUIDv7 was made, to the millisecond."""
    return datetime.fromtimestamp((value.int >> 80) / 1000, UTC)


def floor_of(at: datetime) -> UUID:
    """The smallest UUIDv7 of a time: the edge of a time partition."""
    return UUID(int=int(at.timestamp() * 1000) << 80)
