"""Trouble: says in the log that a provider fails or refuses; a few lines, however many calls."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import structlog

from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    Outcome,
    RecipientPermanent,
    RecipientTemporary,
    Transient,
    Unknown,
    Unsupported,
)
from tocsin.engine.lane import Lane
from tocsin.engine.settlement import Pause

#: A lane has at most one line in this time; the first trouble is told at once.
TELL_EVERY_S: Final = 10.0
#: Different codes that are told apart between two lines.
CODES_MAX: Final = 50

Later = Callable[[float, Callable[[], None]], object]

_Fault = Transient | Unknown
_Refusal = RecipientTemporary | RecipientPermanent | ContentRejected | Unsupported

_log = structlog.get_logger()


class _Tally:
    """What one lane came to since its last line."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.calls = 0
        self.messages = 0
        self.fails = False
        self.codes: Counter[str] = Counter()

    def add(self, bad: Sequence[_Fault | _Refusal]) -> None:
        self.calls += 1
        self.messages += len(bad)
        for outcome in bad:
            self.fails = self.fails or isinstance(outcome, _Fault)
            if outcome.code in self.codes or len(self.codes) < CODES_MAX:
                self.codes[outcome.code] += 1


class Troubles:
    """Counts by lane, and tells codes and numbers only: what a provider said may hold an address.

    later: calls back after some seconds; the running loop's own unless a test brings another.
    """

    def __init__(self, later: Later | None = None) -> None:
        self._later = later
        self._tallies: dict[int, _Tally] = {}
        self._rests: dict[int, tuple[str, datetime]] = {}

    def note(self, lane: Lane, outcomes: Sequence[Outcome]) -> None:
        """One call of the lane has ended so."""
        others = [outcome for outcome in outcomes if type(outcome) is not Accepted]
        bad = [outcome for outcome in others if isinstance(outcome, _Fault | _Refusal)]
        if not bad:
            return
        tally = self._tallies.get(lane.id)
        if tally is not None:
            tally.add(bad)
            return
        first = _Tally(lane)
        first.add(bad)
        self._tell(first)

    def note_rest(self, lane: Lane, pause: Pause, now: datetime) -> None:
        """The lane is about to rest: once for all calls in flight, and seldom while it goes on."""
        code, told_at = self._rests.get(lane.id, ("", now))
        again = code == pause.code and (now - told_at).total_seconds() < TELL_EVERY_S
        if again or lane.rests(now):
            return
        self._rests[lane.id] = (pause.code, now)
        spec = lane.connector.spec
        _log.warning(
            "lane_rests",
            provider=spec.name,
            channel=spec.channel,
            code=pause.code,
            until=str(pause.until),
        )

    def _tell(self, tally: _Tally) -> None:
        lane, spec = tally.lane, tally.lane.connector.spec
        # A provider that fails needs its operator; one that refuses some messages does its work.
        say, event = (_log.warning, "provider_fails") if tally.fails else (_log.info, "refused")
        say(
            event,
            provider=spec.name,
            channel=spec.channel,
            code=tally.codes.most_common(1)[0][0],
            calls=tally.calls,
            messages=tally.messages,
        )
        self._tallies[lane.id] = _Tally(lane)
        later = self._later or asyncio.get_running_loop().call_later
        later(TELL_EVERY_S, lambda: self._look(lane.id))

    def _look(self, lane: int) -> None:
        tally = self._tallies.pop(lane)
        if tally.calls:
            self._tell(tally)
