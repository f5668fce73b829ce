"""Timing: how long a lease lasts, and how often is looked when no hint comes."""

from msgspec import Struct


class Timing(Struct, frozen=True):
    """Seconds. lease_s: the work of a worker that died waits this long for another."""

    lease_s: float = 30.0
    poll_s: float = 0.5
