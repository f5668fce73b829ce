"""A run: one lease being delivered, and what its calls have come to so far."""

from collections.abc import Callable, Sequence
from uuid import UUID

from tocsin.connectors.base import Call, Spec
from tocsin.domain.message import Message
from tocsin.engine.assembly import Assembled
from tocsin.engine.lane import Lane, Turn
from tocsin.store.queue import Lease


class Run:
    """assembled: by job. returned: of these no byte left. park_s: repeat the frozen calls after that long.

    thawed: keys of calls the provider did not take. lost: the lease's time ran out; start nothing new.
    repeats: its calls may have left before; reported: jobs whose attempt has an outcome already.
    """

    __slots__ = (
        "assembled",
        "at",
        "lane",
        "lease",
        "lost",
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
        self.returned: list[UUID] = []
        self.thawed: list[str] = []
        self.park_s: float | None = None
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

    def park(self, seconds: float) -> None:
        self.park_s = seconds if self.park_s is None else max(self.park_s, seconds)

    def put_back(self, call: Call, unit_s: float) -> None:
        """The call is not made: its jobs go back, or it stays frozen if it may have left before."""
        if self.repeats:
            self.park(unit_s)
            return
        self.returned.extend(call.job_ids)
        if call.frozen is not None:
            self.thawed.append(call.key)


def groups_of(
    messages: Sequence[Message], batch_max: int, batchable: Callable[[Message], bool]
) -> list[list[Message]]:
    """Split messages into provider calls, in order; what cannot share a call gets its own."""
    groups: list[list[Message]] = []
    open_group: list[Message] = []
    for message in messages:
        if batch_max > 1 and not batchable(message):
            groups.append([message])
            continue
        open_group.append(message)
        if len(open_group) == batch_max:
            groups.append(open_group)
            open_group = []
    if open_group:
        groups.append(open_group)
    return groups
