"""Streams: many open inboxes on one API, a few messages a second, from the answer to the event at the client."""

import asyncio
import random
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from tocsin.domain.errors import Conflict
from tocsin.faces.cli.bench.children import SETTLE_S, Serving, serve, worker
from tocsin.faces.cli.bench.ground import Ground, Place
from tocsin.faces.cli.bench.http import Line, ask, lines, post
from tocsin.faces.cli.bench.listeners import listening
from tocsin.faces.cli.bench.notify_floor import round_trips
from tocsin.faces.cli.bench.process import peak_rss_mb, rss_mb
from tocsin.faces.cli.bench.report import Figures, Rss, quantile, spread
from tocsin.faces.cli.bench.subject import ENV
from tocsin.faces.cli.bench.together import together
from tocsin.faces.cli.bench.trips import Arrivals, bounded

#: Messages a second of all writers together: what is measured is a latency, not a limit.
RATE: Final = 50.0
FLOOR_TRIPS_MAX: Final = 200
#: Files of this process beside the streams.
FILES: Final = 200

Say = Callable[[str], None]


class Options(Struct, frozen=True):
    """clients: open streams, each of another inbox; writers: senders at one time."""

    jobs: int
    clients: int
    writers: int


class Seen(Struct, frozen=True):
    """kb: memory of the API for each stream, in 10³ bytes; None where it cannot be read."""

    late_ms: list[float]
    seconds: float
    rss: Rss
    kb: float | None


async def measure(place: Place, options: Options, say: Say) -> Figures:
    """The product, then its floor on a ground of the same kind."""
    _allow_files(options.clients + FILES)
    env = ENV | {"EMAIL_PROVIDER": "none"}
    async with (
        place.ground(options.clients) as ground,
        worker(ground, place.folder, env),
        serve(ground, place.folder, env) as api,
    ):
        seen = await _seen(ground, api, options, say)
    say("floor: rows whose own transaction notifies")
    async with place.ground(0) as ground:
        trips = min(options.jobs, FLOOR_TRIPS_MAX)
        floor_ms = await round_trips(ground, trips, inside=True)
    half = quantile(seen.late_ms, 0.5)
    memory = "unknown" if seen.kb is None else f"{seen.kb:.1f} kB of the API's memory each"
    return Figures(
        jobs=options.jobs,
        seconds=seen.seconds,
        rate=1e3 / half,
        floor_rate=1e3 / quantile(floor_ms, 0.5),
        p50_ms=half,
        p99_ms=quantile(seen.late_ms, 0.99),
        rss=seen.rss,
        notes=(
            ("streams", f"{options.clients:,}, {memory}"),
            ("load", f"{options.writers} writers, {RATE:.0f} messages a second together"),
            ("latency", "from the answer to the send to the event at the client"),
            ("rate", "such trips one after the other in a second, 1 / p50"),
            (
                "floor",
                f"{spread(floor_ms)}: one row, NOTIFY in its transaction, heard by a LISTEN; no queue, no inbox, no browser",
            ),
        ),
    )


async def _seen(ground: Ground, api: Serving, options: Options, say: Say) -> Seen:
    arrivals = Arrivals()
    await asyncio.sleep(SETTLE_S)
    idle = rss_mb(api.child.pid)
    say(f"opening {options.clients:,} streams")
    async with listening(api.url, ground.key, options.clients, arrivals):
        full = rss_mb(api.child.pid)
        say(f"sending {options.jobs:,} messages")
        began = time.perf_counter()
        answered = await _sent(ground, api.url, options)
        late_ms = []
        async with bounded("an event"):
            for name, at in answered.items():
                late_ms.append(max((await arrivals.of(name) - at) * 1e3, 1e-3))
        seconds = time.perf_counter() - began
    kb = None if idle is None or full is None else (full - idle) * 1e3 / options.clients
    return Seen(late_ms, seconds, Rss(idle, peak_rss_mb(api.child.pid)), kb)


async def _sent(ground: Ground, url: str, options: Options) -> dict[str, float]:
    """When each message's send was answered, by the message's id."""
    answered: dict[str, float] = {}
    numbers = iter(range(options.jobs))

    async def write(line: Line) -> None:
        for request in _requests(ground, url, options, numbers):
            await asyncio.sleep(random.uniform(0, 2 * options.writers / RATE))
            trip = await ask(line, request)
            receipt: dict[str, Any] = msgspec.json.decode(trip.answer.body)
            answered[receipt["job_ids"][0]] = trip.ended

    async with lines(url, options.writers) as opened:
        await together(map(write, opened))
    return answered


def _requests(
    ground: Ground, url: str, options: Options, numbers: Iterator[int]
) -> Iterator[bytes]:
    for number in numbers:
        said = {
            "channel": "in_app",
            "subscriber_id": f"user-{random.randint(1, options.clients)}",
            "subject": "Export ready",
            "body": f"Your export {number} has 4,212 rows.",
            "icon": "check",
        }
        yield post(url, "/v1/send", ground.key, msgspec.json.encode(said))


def _allow_files(wanted: int) -> None:
    """Let this process hold that many connections; the API's does so by itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if wanted > hard:
        raise Conflict(
            "too_few_files",
            f"a process may have {hard} files open here; {wanted} are needed",
            remedy="raise the limit (ulimit -n), or open fewer streams with --clients",
        )
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
