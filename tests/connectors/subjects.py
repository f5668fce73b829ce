"""The connectors that go through the contract suite, each on its bench."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

from tests.connectors.contract import NOW, SECRET, THROTTLE_S, Bench, Subject, Trouble
from tests.connectors.smtp_bench import smtp
from tocsin.connectors.email.resend import Resend, ResendConfig
from tocsin.connectors.inapp import InApp
from tocsin.connectors.log import Log
from tocsin.domain.channel import Channel
from tocsin.simulators.asgi import serving
from tocsin.simulators.fault import Fault
from tocsin.simulators.resend import Limits, ResendSimulator
from tocsin.wire.http import HttpClient

API_KEY = f"re_{SECRET}"
TIMEOUT_S = 0.3


class Frozen:
    """A clock that stands."""

    def now(self):
        return NOW


# ------------------------------------------------------------------------------ resend

_RESEND_FAULTS = {
    Trouble.THROTTLED: Fault(
        "status",
        429,
        '{"statusCode":429,"name":"rate_limit_exceeded","message":"Too many requests"}',
        {"retry-after": f"{THROTTLE_S:.0f}"},
    ),
    Trouble.FAILING: Fault("status", 500, '{"statusCode":500,"name":"application_error"}'),
    Trouble.SILENT: Fault("hang", accept=True),
    Trouble.LOST: Fault("reset", accept=True),
    Trouble.MALFORMED: Fault("status", 200, "<html>all is well</html>", accept=True),
    Trouble.MALFORMED_FAILURE: Fault("status", 502, "<html>bad gateway</html>"),
}


@asynccontextmanager
async def resend(trouble: Trouble) -> AsyncIterator[Bench]:
    keys = frozenset({"re_another"} if trouble is Trouble.KEY_REFUSED else {API_KEY})
    simulator = ResendSimulator(Limits(keys=keys, requests_per_s=1000))
    if trouble in _RESEND_FAULTS:
        simulator.faults.add(_RESEND_FAULTS[trouble])
    async with AsyncExitStack() as stack:
        if trouble is Trouble.REFUSED:
            bound = stack.enter_context(socket.socket())
            bound.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        else:
            url = await stack.enter_async_context(serving(simulator))
        timeout_s = TIMEOUT_S if trouble is Trouble.SILENT else 10.0
        config = ResendConfig(API_KEY, url, timeout_s)
        connector = Resend(config, http=HttpClient(), clock=Frozen())
        stack.push_async_callback(connector.aclose)
        entries = simulator.journal.entries
        yield Bench(
            connector,
            accepted=lambda: [UUID(entry.tags["tocsin_job_id"]) for entry in entries],
            job_of=lambda sent: next(
                UUID(entry.tags["tocsin_job_id"]) for entry in entries if entry.id == sent
            ),
        )


# ------------------------------------------------------------------------------ nothing is sent


def log(channel: Channel) -> Subject:
    @asynccontextmanager
    async def opened(trouble: Trouble) -> AsyncIterator[Bench]:
        yield Bench(Log(channel))

    return Subject(f"log-{channel}", opened)


@asynccontextmanager
async def inapp(trouble: Trouble) -> AsyncIterator[Bench]:
    yield Bench(InApp())


SUBJECTS = [
    Subject("resend", resend, frozenset(Trouble), dedupes=True),
    Subject("smtp", smtp, frozenset(Trouble)),
    log("email"),
    log("sms"),
    log("in_app"),
    Subject("inapp", inapp),
]
