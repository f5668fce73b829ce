"""Trouble: says in the log that a provider fails or refuses, at once and then in few lines, however many calls."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

import structlog

from tocsin.domain.outcome import (
    ContentRejected,
    Outcome,
    RecipientPermanent,
    RecipientTemporary,
    Transient,
    Unknown,
    Unsupported,
)
from tocsin.engine.lane import Lane

#: A lane has one line in this time.
TELL_EVERY_S = 10.0
#: Different codes counted between two lines.
CODES_MAX = 50

_FAULTS = frozenset({Transient, Unknown})
_REFUSALS = frozenset({RecipientTemporary, RecipientPermanent, ContentRejected, Unsupported})

_log = structlog.get_logger()


class _Tally:
    """What one lane came to since its last line."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.calls = 0
        self.fails = False
        self.codes: Counter[str] = Counter()

    def add(self, bad: Sequence[tuple[str, bool]]) -> None:
        self.calls += 1
        for code, is_fault in bad:
            self.fails = self.fails or is_fault
            if code in self.codes or len(self.codes) < CODES_MAX:
                self.codes[code] += 1


class Troubles:
    """Counts by lane. `later(seconds, callback)` is the running loop's unless a test has its own.

    Codes and numbers only: what a provider said may hold an address.
    """

    def __init__(
        self, later: Callable[[float, Callable[[], None]], object] | None = None
    ) -> None:
        self._later = later
        self._tallies: dict[int, _Tally] = {}

    def note(self, lane: Lane, outcomes: Sequence[Outcome]) -> None:
        """One call has ended so."""
        bad = [_seen(outcome) for outcome in outcomes if type(outcome) in _WATCHED]
        if not bad:
            return
        tally = self._tallies.get(lane.id)
        if tally is not None:
            tally.add(bad)
            return
        first = _Tally(lane)
        first.add(bad)
        self._tell(first)

    def _tell(self, tally: _Tally) -> None:
        spec = tally.lane.connector.spec
        (code, _), *_ = tally.codes.most_common(1)
        # A provider that fails needs its operator; one that refuses some messages does its work.
        level, event = (_log.warning, "provider_fails") if tally.fails else (_log.info, "refused")
        level(
            event,
            provider=spec.name,
            channel=spec.channel,
            code=code,
            calls=tally.calls,
            messages=tally.codes.total(),
        )
        self._tallies[tally.lane.id] = _Tally(tally.lane)
        later = self._later or asyncio.get_running_loop().call_later
        later(TELL_EVERY_S, lambda: self._look(tally.lane.id))

    def _look(self, lane: int) -> None:
        tally = self._tallies.pop(lane)
        if tally.calls:
            self._tell(tally)


_WATCHED = _FAULTS | _REFUSALS


def _seen(outcome: Outcome) -> tuple[str, bool]:
    return getattr(outcome, "code", ""), type(outcome) in _FAULTS
