"""A run: one lease being delivered, and what its calls have come to so far."""

from uuid import UUID

from tocsin.connectors.base import Call, Spec
from tocsin.domain.message import Message
from tocsin.engine.assembly import Assembled
from tocsin.engine.lane import Lane, Turn
from tocsin.store.queue import Lease


class Run:
    """assembled: by job. composed: the messages of local jobs, until they are settled. returned: of these no byte left. park_s: repeat the frozen calls after that long.

    thawed: keys of calls the provider did not take. lost: the lease's time ran out; start nothing new.
    repeats: its calls may have left before; reported: jobs whose attempt has an outcome already.
    """

    __slots__ = (
        "assembled",
        "at",
        "composed",
        "lane",
        "lease",
        "lost",
        "park_counts",
        "park_s",
        "repeats",
        "reported",
        "returned",
        "settled",
        "thawed",
        "turn",
    )

    def __init__(
        self,
        lease: Lease,
        lane: Lane,
        *,
        repeats: bool = False,
        reported: frozenset[UUID] = frozenset(),
        turn: Turn | None = None,
    ) -> None:
        self.lease = lease
        self.lane = lane
        self.repeats = repeats
        self.reported = reported
        self.turn = turn or Turn(None)
        self.at = {job_id: i for i, job_id in enumerate(lease.job_ids)}
        self.assembled: dict[UUID, Assembled] = {}
        self.composed: dict[UUID, Message] = {}
        self.returned: list[UUID] = []
        self.thawed: list[str] = []
        self.park_s: float | None = None
        self.park_counts = False
        self.settled = 0
        self.lost = False

    @property
    def spec(self) -> Spec:
        return self.lane.connector.spec

    @property
    def is_accounted_for(self) -> bool:
        """Every job is settled, given back or kept frozen."""
        known = self.settled + len(self.returned) + len(self.reported)
        return self.park_s is not None or known >= len(self.at)

    def park(self, seconds: float, *, counts: bool = False) -> None:
        """Keep the frozen calls for later; counts: the try that was made now is used up."""
        self.park_s = seconds if self.park_s is None else max(self.park_s, seconds)
        self.park_counts = self.park_counts or counts

    def put_back(self, call: Call, unit_s: float) -> None:
        """The call is not made: its jobs go back, or it stays frozen if it may have left before."""
        if self.repeats:
            self.park(unit_s)
            return
        self.returned.extend(call.job_ids)
        if call.frozen is not None:
            self.thawed.append(call.key)
