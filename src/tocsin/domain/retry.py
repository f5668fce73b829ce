"""Retry: how long to wait before which attempt."""

from typing import Final

#: notifyd's schedule, in seconds: the wait after the first, second, … attempt that counts.
SCHEDULE_S: Final = (30.0, 120.0, 600.0, 1800.0, 7200.0)
SPREAD: Final = 0.2
#: The first unknown outcome is asked again soon: the answer is lost, the provider is not known to be ill.
UNKNOWN_S: Final = 2.0


def wait_s(tries: int, chance: float) -> float:
    """Seconds to wait once `tries` attempts are used up (1 or more); chance in [0, 1) spreads by ±20 %."""
    base = SCHEDULE_S[min(max(tries, 1), len(SCHEDULE_S)) - 1]
    return base * (1 + SPREAD * (2 * chance - 1))
