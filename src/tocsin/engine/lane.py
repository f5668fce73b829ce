"""A lane in this process: its connector, and whether it rests."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from tocsin.connectors.base import Connector

#: Jobs of one lease, where the connector takes batches or delivers into our own database.
CLAIM_MAX = 500
#: Jobs of one lease where each message is a call: what a crash leaves unknown is at most this.
CLAIM_MAX_SINGLE = 200


@dataclass(slots=True)
class Lane:
    """id: of the row in `lanes`. rests_until is this process's copy of `lanes.paused_until`."""

    id: int
    channel: str
    connector: Connector
    rests_until: datetime | None = None
    calls: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.calls = asyncio.Semaphore(self.connector.spec.in_flight_max)

    @property
    def claim_max(self) -> int:
        spec = self.connector.spec
        return CLAIM_MAX if spec.batch_max > 1 or spec.local else CLAIM_MAX_SINGLE

    def rest(self, until: datetime) -> None:
        """Start nothing before `until`; a rest never shortens another."""
        if self.rests_until is None or until > self.rests_until:
            self.rests_until = until

    def rests(self, now: datetime) -> bool:
        return self.rests_until is not None and self.rests_until > now
