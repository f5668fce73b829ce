"""A settlement: what the dispatcher hands to the settler about one lease, to be written in one commit."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.inbox import NewMessage
from tocsin.store.outcomes import Fact


class Ending(Struct, frozen=True):
    """How a lease ends: returned jobs go back unstarted; a parked one keeps its frozen calls.

    thawed: keys of calls that the provider is known not to have taken.
    """

    lease: int
    returned: tuple[UUID, ...] = ()
    park_until: datetime | None = None
    park_counts: bool = False
    thawed: tuple[str, ...] = ()


class Pause(Struct, frozen=True):
    """The provider asked the whole lane to rest."""

    lane: int
    until: datetime
    code: str
    reason: str


class DeadAddress(Struct, frozen=True):
    """The provider said that this address reaches nobody."""

    project: int
    channel: str
    address: str
    code: str
    job_id: UUID


class Settlement(Struct, frozen=True):
    """facts: one per attempt that ended; messages: inbox rows of the same jobs, written with them."""

    facts: tuple[Fact, ...] = ()
    messages: tuple[NewMessage, ...] = ()
    freed_keys: tuple[tuple[int, bytes, UUID], ...] = ()
    dead_addresses: tuple[DeadAddress, ...] = ()
    pauses: tuple[Pause, ...] = ()
    ending: Ending | None = None
