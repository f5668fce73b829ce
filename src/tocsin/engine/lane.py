"""A lane in this process: its connector, how much it takes at a time, and whether it rests."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from tocsin.connectors.base import Connector

#: Jobs of one lease at most, unless the settings say otherwise.
CLAIM_MAX = 500
#: A lease holds about this much work: what arrives meanwhile, however urgent, waits behind it.
LEASE_WORK_S = 0.1
#: A lease is at most this many times the last one.
GROWTH_MAX = 4


class Turn:
    """The place of a lease in its lane: it starts its calls when the one claimed before has started all its own.

    So leases are assembled side by side, and their calls still leave in the order of the queue.
    """

    __slots__ = ("_before", "over")

    def __init__(self, before: "Turn | None") -> None:
        self._before = before
        self.over = asyncio.Event()

    async def comes(self) -> None:
        if self._before is not None:
            await self._before.over.wait()
            self._before = None

    def ends(self) -> None:
        self.over.set()


@dataclass(slots=True)
class Lane:
    """id: of the row in `lanes`. paced: its calls are granted by that row. rests_until is this process's copy of `lanes.paused_until`."""

    id: int
    channel: str
    connector: Connector
    paced: bool = False
    claim_max: int = CLAIM_MAX
    rests_until: datetime | None = None
    calls: asyncio.Semaphore = field(init=False)
    claim_size: int = field(init=False)
    _last_turn: Turn | None = None

    def __post_init__(self) -> None:
        self.calls = asyncio.Semaphore(self.connector.spec.in_flight_max)
        self.claim_size = self.claim_min

    @property
    def claim_min(self) -> int:
        """One full batch, or one message for each call that may be in flight."""
        spec = self.connector.spec
        if spec.local:
            return self.claim_max
        return min(max(spec.batch_max, spec.in_flight_max), self.claim_max)

    def next_turn(self) -> Turn:
        """The turn behind all that were given."""
        self._last_turn = Turn(self._last_turn)
        return self._last_turn

    def adapt(self, jobs: int, seconds: float) -> None:
        """Size the next lease by how long this one took."""
        fitting = self.claim_max if seconds <= 0 else int(jobs * LEASE_WORK_S / seconds)
        grown = min(fitting, self.claim_size * GROWTH_MAX, self.claim_max)
        self.claim_size = max(grown, self.claim_min)

    def rest(self, until: datetime) -> None:
        """Start nothing before `until`; a rest never shortens another."""
        if self.rests_until is None or until > self.rests_until:
            self.rests_until = until

    def rests(self, now: datetime) -> bool:
        return self.rests_until is not None and self.rests_until > now
