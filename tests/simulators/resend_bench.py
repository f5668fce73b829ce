"""The simulated Resend, served, and a client that asks it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tocsin.simulators.asgi import serving
from tocsin.simulators.journal import Journal
from tocsin.simulators.resend import Limits, ResendSimulator
from tocsin.wire.http import HttpClient, Reply

BOUND_S = 20.0
MAIL = {
    "from": "Acme <news@example.com>",
    "to": ["jane@example.com"],
    "subject": "Hi",
    "text": "Hello",
    "tags": [{"name": "tocsin_job_id", "value": "job-1"}],
}


class Hours:
    """A monotonic clock that moves when told, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    simulator: ResendSimulator
    hours: Hours
    http: HttpClient
    url: str

    async def post(self, said, path="/emails", *, key=None, timeout_s=BOUND_S, **headers):
        lines = {"authorization": "Bearer re_1", "content-type": "application/json"} | headers
        if key is not None:
            lines["idempotency-key"] = key
        body = said if isinstance(said, bytes) else msgspec.json.encode(said)
        return await self.http.request(
            "POST", self.url + path, headers=lines, body=body, timeout_s=timeout_s
        )


@asynccontextmanager
async def resend(limits: Limits | None = None, journal: Path | None = None) -> AsyncIterator[Bench]:
    hours = Hours()
    simulator = ResendSimulator(
        limits or Limits(requests_per_s=1000), journal=Journal(journal), monotonic=hours
    )
    async with serving(simulator) as url:
        http = HttpClient()
        yield Bench(simulator, hours, http, url)
        await http.aclose()
    simulator.journal.close()


def name_of(reply) -> str:
    assert isinstance(reply, Reply)
    said = msgspec.json.decode(reply.body)
    assert said["statusCode"] == reply.status
    return said["name"]
