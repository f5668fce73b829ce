"""Enqueue: batches over HTTP into a running API."""

import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from tocsin.faces.cli.bench import enqueue_floor, meter
from tocsin.faces.cli.bench.children import serve
from tocsin.faces.cli.bench.ground import Place
from tocsin.faces.cli.bench.http import ask_all, lines
from tocsin.faces.cli.bench.process import peak_rss_mb, rss_mb
from tocsin.faces.cli.bench.report import Figures, Rss, quantile
from tocsin.faces.cli.bench.subject import CALL, ENV, batches
from tocsin.store import gauges

#: People of the call on each connection that does not count: statements are prepared by then.
WARM_UP: Final = 100


class Options(Struct, frozen=True):
    """clients: calls at one time."""

    jobs: int
    clients: int


async def measure(place: Place, options: Options, say: Callable[[str], None]) -> Figures:
    """The product, then its floor on a ground of the same kind."""
    jobs, clients = options.jobs, options.clients
    async with place.ground(max(jobs, WARM_UP)) as ground:
        async with serve(ground, place.folder, ENV | {"EMAIL_PROVIDER": "log"}) as api:
            pid = api.child.pid
            idle = rss_mb(pid)
            requests = batches(api.url, ground, jobs)
            warm_up = batches(api.url, ground, WARM_UP) * clients
            died = await gauges.dead_tuples(ground.db)
            say(f"enqueueing {jobs:,} jobs in calls of {CALL:,}")
            async with lines(api.url, clients) as opened:
                await ask_all(opened, warm_up)
                before, own = await meter.read(ground, pid), time.process_time()
                took_ms = await ask_all(opened, requests)
                after, own = await meter.read(ground, pid), time.process_time() - own
            rss = Rss(idle, peak_rss_mb(pid))
        dead_tuples = (await gauges.dead_tuples(ground.db) - died) / (jobs + WARM_UP * clients)
    say("floor: the same statements called directly")
    async with place.ground(max(jobs, WARM_UP)) as ground:
        floor_rate = await enqueue_floor.rate(ground, jobs, clients, WARM_UP)
    used = meter.used(before, after, jobs)
    return Figures(
        jobs=jobs,
        seconds=used.seconds,
        rate=jobs / used.seconds,
        floor_rate=floor_rate,
        p50_ms=quantile(took_ms, 0.5),
        p99_ms=quantile(took_ms, 0.99),
        cpu=used.cpu,
        wal_bytes=used.wal_bytes,
        dead_tuples=dead_tuples,
        rss=rss,
        notes=(
            (
                "load",
                f"{clients} clients, {CALL:,} subscribers in one call; p50 and p99 are a call's",
            ),
            ("load generator", f"{own / jobs * 1e6:.1f} µs of processor time for each job"),
        ),
    )
