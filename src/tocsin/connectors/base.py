"""What every connector is: a Spec, one `deliver`, one Outcome per job."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from msgspec import Struct

from tocsin.domain.channel import Channel
from tocsin.domain.message import Message
from tocsin.domain.outcome import Outcome


class Spec(Struct, frozen=True):
    """What the engine must know of a provider.

    batch_max: messages in one provider call; in_flight_max: provider calls at one time;
    dedupes: a repeat with the same key is not sent twice, so the call's bytes are frozen before the first try;
    local: delivery is a row in our own database, written by the settler in its own commit (exactly once).
    """

    name: str
    channel: Channel
    title: str
    docs: str
    checked: str
    batch_max: int = 1
    in_flight_max: int = 50
    dedupes: bool = False
    local: bool = False


class Call(Struct, frozen=True):
    """One provider call, frozen: which jobs it carries, under which key, saying what.

    key: the job's id for a single call, the frozen call's id for a batch; never an attempt's (law 4).
    frozen: the exact request body where the connector dedupes; `messages` may then be empty (a repeat after a crash).
    """

    key: str
    job_ids: tuple[UUID, ...]
    messages: tuple[Message, ...] = ()
    frozen: bytes | None = None


class Connector(Protocol):
    """A provider account. It never raises for what the provider said, only for bugs."""

    @property
    def spec(self) -> Spec: ...

    def freeze(self, messages: Sequence[Message]) -> bytes:
        """The request body for these messages, the same bytes every time. Only called when `spec.dedupes`."""
        ...

    async def deliver(self, call: Call) -> list[Outcome]:
        """Make the call; exactly one outcome per `call.job_ids`, in that order."""
        ...

    async def aclose(self) -> None:
        """Close connections; nothing is in flight when this is called."""
        ...
