"""Send: single sends over HTTP into a running API, each answered when it is durable."""

import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct

from tocsin.faces.cli.bench import meter
from tocsin.faces.cli.bench.children import Child, clean_environment, running, said, serve
from tocsin.faces.cli.bench.ground import Ground, Place
from tocsin.faces.cli.bench.http import ask_all, lines
from tocsin.faces.cli.bench.meter import Used
from tocsin.faces.cli.bench.process import peak_rss_mb, rss_mb
from tocsin.faces.cli.bench.report import Figures, Rss, quantile, spread
from tocsin.faces.cli.bench.subject import ENV, codes
from tocsin.store import gauges

#: Sends before the first that counts: connections open, statements are prepared.
WARM_UP_MAX: Final = 1_000
FLOOR: Final = "tocsin.faces.cli.bench.bare"


class Options(Struct, frozen=True):
    """clients: connections, each with one request at a time."""

    jobs: int
    clients: int


class Address(Struct, frozen=True):
    """What the floor's process prints."""

    url: str


class Load(Struct, frozen=True):
    """own_us: processor time of the load generator for each job."""

    used: Used
    took_ms: list[float]
    own_us: float


async def measure(place: Place, options: Options, say: Callable[[str], None]) -> Figures:
    """The product, then its floor on a ground of the same kind."""
    jobs = options.jobs
    async with place.ground(0) as ground:
        async with serve(ground, place.folder, ENV | {"EMAIL_PROVIDER": "log"}) as api:
            say(f"sending {jobs:,} with {options.clients} clients")
            idle = rss_mb(api.child.pid)
            died = await gauges.dead_tuples(ground.db)
            load = await _loaded(ground, api.url, api.child.pid, options)
            rss = Rss(idle, peak_rss_mb(api.child.pid))
        dead_tuples = (await gauges.dead_tuples(ground.db) - died) / (jobs + _warm_up(options))
    say("floor: a bare handler with group commit")
    async with place.ground(0) as ground, _bare(place, ground) as (child, url):
        floor = await _loaded(ground, url, child.pid, options)
    return Figures(
        jobs=jobs,
        seconds=load.used.seconds,
        rate=jobs / load.used.seconds,
        floor_rate=jobs / floor.used.seconds,
        p50_ms=quantile(load.took_ms, 0.5),
        p99_ms=quantile(load.took_ms, 0.99),
        cpu=load.used.cpu,
        wal_bytes=load.used.wal_bytes,
        dead_tuples=dead_tuples,
        rss=rss,
        notes=(
            ("load", f"{options.clients} clients, each with one request at a time"),
            ("floor", spread(floor.took_ms)),
            ("load generator", f"{load.own_us:.1f} µs of processor time for each send"),
        ),
    )


async def _loaded(ground: Ground, url: str, pid: int, options: Options) -> Load:
    warm_up = _warm_up(options)
    # All of them before the clock starts: making them is no part of the load.
    requests = list(codes(url, ground, warm_up + options.jobs))
    async with lines(url, options.clients) as opened:
        await ask_all(opened, requests[:warm_up])
        before, own_s = await meter.read(ground, pid), time.process_time()
        took_ms = await ask_all(opened, requests[warm_up:])
        own_s = time.process_time() - own_s
        after = await meter.read(ground, pid)
    own_us = own_s / options.jobs * 1e6
    return Load(meter.used(before, after, options.jobs), took_ms, own_us)


def _warm_up(options: Options) -> int:
    return min(options.jobs // 10, WARM_UP_MAX)


@asynccontextmanager
async def _bare(place: Place, ground: Ground) -> AsyncIterator[tuple[Child, str]]:
    """The floor's process and its address."""
    command = [sys.executable, "-m", FLOOR, str(ground.number)]
    env = clean_environment(place.folder) | {"DATABASE_URL": ground.url}
    async with running(command, env, place.folder / "bare.log") as child:
        yield child, (await said(child, Address)).url
