"""Scripted faults of the HTTP simulators: what the next requests meet instead of an honest answer."""

from collections import deque
from typing import Literal

from msgspec import Struct

SCRIPT_MAX = 10_000


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """What the next `times` requests meet.

    status: answered with `status`, `body` (text, any) and `headers`; hang: no answer until the client leaves;
    reset: the connection is reset after the request was read; drop: it is reset before; none: an honest answer,
    to let some pass before the next fault.
    accept: the request is done first as if nothing were wrong, and its honest answer is lost.
    """

    kind: Literal["status", "hang", "reset", "drop", "none"]
    status: int = 500
    body: str = ""
    headers: dict[str, str] = {}
    accept: bool = False
    times: int = 1


class FaultScript:
    """The faults to come, in order; `total` of those that were met."""

    def __init__(self) -> None:
        self._coming: deque[Fault] = deque()
        self.total = 0

    def add(self, *faults: Fault) -> None:
        for fault in faults:
            if len(self._coming) + fault.times > SCRIPT_MAX:
                raise ValueError(f"more than {SCRIPT_MAX} faults are waiting")
            self._coming.extend([fault] * fault.times)

    def clear(self) -> None:
        self._coming.clear()

    def take(self) -> Fault | None:
        """The fault of this request, if any."""
        if not self._coming:
            return None
        self.total += 1
        return self._coming.popleft()
