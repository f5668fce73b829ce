"""A job: one recipient on one channel; its states and what each means to an API client."""

from enum import IntEnum


class State(IntEnum):
    """What became of one attempt; the number is stored in `outcomes.state`."""

    SENT = 1
    RETRY = 2
    FAILED = 3
    CANCELLED = 4
    SKIPPED = 5
    UNKNOWN = 6
    EXPIRED = 7
    THROTTLED = 8


def status_of(state: int | None, *, waits: bool, leased: bool, cancelled: bool) -> str:
    """The word an API client reads, notifyd's where it has one.

    state: the latest outcome's, None before the first; waits: that outcome planned another attempt.
    A skipped job reads `sent`, as with notifyd; its provider is `skipped`.
    """
    match state:
        case State.SENT | State.SKIPPED:
            return "sent"
        case State.FAILED | State.EXPIRED:
            return "failed"
        case State.CANCELLED:
            return "cancelled"
        case State.UNKNOWN if not waits:
            return "unknown"
        case _:
            if leased:
                return "processing"
            if cancelled:
                return "cancelled"
            return "pending" if state is None else "retry"
