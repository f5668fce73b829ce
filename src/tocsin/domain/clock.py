"""The clock as a value that is passed in: the database's in production, a movable one in tests."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time; aware, UTC."""

    def now(self) -> datetime: ...
