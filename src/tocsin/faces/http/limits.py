"""Inbound rate limits: one token bucket per caller and process, a minute's worth deep."""

import math
from collections.abc import Callable, Hashable
from typing import Final

from tocsin.domain.errors import RateLimited

CALLERS_MAX: Final = 10_000
BLOCKED_RETRY_S: Final = 60


class Buckets:
    """Remembers the last CALLERS_MAX callers; one that was forgotten starts with a full bucket."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._full_at: dict[Hashable, float] = {}

    def take(self, caller: Hashable, per_min: int | None) -> None:
        """Take one token. None: no limit; 0: nothing passes. Raises RateLimited."""
        if per_min is None:
            return
        if per_min <= 0:
            raise _limited(0, BLOCKED_RETRY_S)
        now = self._clock()
        interval = 60.0 / per_min
        full_at = max(self._full_at.pop(caller, now), now) + interval
        # The bucket is empty when filling it takes the whole minute.
        short_s = full_at - now - 60.0
        if short_s > 1e-9:
            self._full_at[caller] = full_at - interval
            raise _limited(per_min, max(1, math.ceil(short_s)))
        self._full_at[caller] = full_at
        if len(self._full_at) > CALLERS_MAX:
            del self._full_at[next(iter(self._full_at))]


def _limited(per_min: int, retry_after_s: int) -> RateLimited:
    return RateLimited(
        "rate_limited",
        "Rate limit exceeded",
        remedy="wait for the time in Retry-After"
        if per_min
        else "this project is blocked: its rate_limit_per_min is 0",
        retry_after_s=retry_after_s,
        extra={"limit_per_min": per_min},
    )
