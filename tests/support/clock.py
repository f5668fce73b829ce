"""A clock that moves only when it is told to."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class MovableClock:
    def __init__(self, at: datetime = START) -> None:
        self._at = at

    def now(self) -> datetime:
        return self._at

    def advance(self, **by: float) -> datetime:
        """By what timedelta takes: advance(seconds=30); the new time."""
        self._at += timedelta(**by)
        return self._at

    def set(self, at: datetime) -> None:
        self._at = at
