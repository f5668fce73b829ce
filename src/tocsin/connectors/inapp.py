"""In-app: the inbox is our own table, so the settler writes the rows in the commit that settles the jobs."""

from collections.abc import Sequence
from typing import Final

from tocsin.connectors.base import Call, Spec
from tocsin.domain.message import Message
from tocsin.domain.outcome import Accepted, Outcome

SPEC: Final = Spec(
    name="inapp",
    channel="in_app",
    title="In-app inbox",
    docs="",
    checked="2026-11-30",
    batch_max=500,
    local=True,
)


class InApp:
    """Says yes to every message; no byte leaves this process."""

    @property
    def spec(self) -> Spec:
        return SPEC

    def freeze(self, messages: Sequence[Message]) -> bytes:
        raise TypeError(f"{len(messages)} inbox rows have no request body")

    async def deliver(self, call: Call) -> list[Outcome]:
        return [Accepted()] * len(call.job_ids)

    async def aclose(self) -> None:
        pass
