"""Drain: a campaign released at once, delivered by one worker process with everything switched on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from tocsin.domain.job import State
from tocsin.faces.cli.bench import drain_floor, meter
from tocsin.faces.cli.bench.children import Child, serve, worker
from tocsin.faces.cli.bench.ground import Ground, Place, checkpoint
from tocsin.faces.cli.bench.http import ask_all, lines
from tocsin.faces.cli.bench.meter import Used
from tocsin.faces.cli.bench.process import peak_rss_mb, rss_mb
from tocsin.faces.cli.bench.report import Figures, Rss
from tocsin.faces.cli.bench.spoiled import Spoiled
from tocsin.faces.cli.bench.subject import ENV, batches
from tocsin.store import gauges
from tocsin.store.pool import open_session

#: From the first call to the release: time to enqueue everything, even on a slow machine.
AHEAD_S: Final = 5.0
ENQUEUED_PER_S_MIN: Final = 4_000
#: The last reading before the release is taken this long before it.
EDGE_S: Final = 0.05
LOOK_S: Final = 0.05
#: Near the end, where a look decides about the figure.
LOOK_CLOSE_S: Final = 0.004
CLOSE: Final = 0.97
#: Without one more outcome for this long, no more is coming.
STALL_S: Final = 60.0
CLIENTS: Final = 2
EIGHTHS: Final = (1 / 8, 7 / 8, 1.0)
#: The world a campaign is sent in is no part of what a sent job takes.
SEEDED: Final = ("subscribers", "preferences", "suppressions")

Say = Callable[[str], None]


class Options(Struct, frozen=True):
    """provider_batch: messages in one call of the provider; pinned: an old snapshot is held open."""

    jobs: int
    provider_batch: int
    pinned: bool


class Run(Struct, frozen=True):
    """One drain. eighths: jobs per second of the first and of the last eighth, None with too few jobs."""

    used: Used
    rate: float
    seconds: float
    rss: Rss
    eighths: tuple[float, float] | None
    enqueue_wal: float
    disk: dict[str, int]
    dead_tuples: float


async def measure(place: Place, options: Options, say: Say) -> Figures:
    """The product, then its floor on a ground of the same kind."""
    async with place.ground(options.jobs) as ground:
        run = await _run(place, ground, options, say)
    say("floor: the same statements without the product")
    async with place.ground(options.jobs) as ground, _snapshot(ground, options):
        floor_rate = await drain_floor.rate(ground, options.jobs)
    return Figures(
        jobs=options.jobs,
        seconds=run.seconds,
        rate=run.rate,
        floor_rate=floor_rate,
        cpu=run.used.cpu,
        wal_bytes=run.used.wal_bytes,
        dead_tuples=run.dead_tuples,
        disk_bytes=sum(run.disk.values()) / options.jobs,
        rss=run.rss,
        notes=_notes(run, options),
    )


async def _run(place: Place, ground: Ground, options: Options, say: Say) -> Run:
    env = ENV | {"EMAIL_PROVIDER": "log", "EMAIL_LOG_BATCH": str(options.provider_batch)}
    sizes = await gauges.table_bytes(ground.db)
    async with worker(ground, place.folder, env) as child:
        idle = rss_mb(child.pid)
        say(f"enqueueing {options.jobs:,} jobs")
        wal = await gauges.wal_bytes(ground.db)
        due = await _enqueue(place, ground, options.jobs, env)
        enqueue_wal = (await gauges.wal_bytes(ground.db) - wal) / options.jobs
        await checkpoint(ground)
        died = await gauges.dead_tuples(ground.db)
        async with _snapshot(ground, options):
            await _until(ground, due)
            say("draining")
            before = await meter.read(ground, child.pid)
            ended = await _drained(ground, options.jobs, child)
            after = await meter.read(ground, child.pid)
        rss = Rss(idle, peak_rss_mb(child.pid))
    # Its sessions have ended with it, and so reported what they did.
    dead_tuples = (await gauges.dead_tuples(ground.db) - died) / options.jobs
    await checkpoint(ground)
    grown = await gauges.table_bytes(ground.db)
    await _check(ground, options.jobs)
    seconds = (ended - due).total_seconds()
    return Run(
        used=meter.used(before, after, options.jobs),
        rate=options.jobs / seconds,
        seconds=seconds,
        rss=rss,
        eighths=await _eighths(ground, options.jobs, due),
        enqueue_wal=enqueue_wal,
        disk={name: grown[name] - sizes.get(name, 0) for name in grown if name not in SEEDED},
        dead_tuples=dead_tuples,
    )


async def _enqueue(place: Place, ground: Ground, jobs: int, env: dict[str, str]) -> datetime:
    """All jobs, scheduled for one moment; that moment."""
    async with serve(ground, place.folder, env) as api:
        due = ground.clock.now() + timedelta(seconds=AHEAD_S + jobs / ENQUEUED_PER_S_MIN)
        async with lines(api.url, CLIENTS) as opened:
            await ask_all(opened, batches(api.url, ground, jobs, due))
    return due


async def _until(ground: Ground, due: datetime) -> None:
    left_s = (due - ground.clock.now()).total_seconds() - EDGE_S
    if left_s < 0:
        raise Spoiled(
            f"enqueueing took {-left_s:.1f} s too long: the drain had begun before its end"
        )
    await asyncio.sleep(left_s)


async def _drained(ground: Ground, jobs: int, child: Child) -> datetime:
    """When every outcome was seen to be committed."""
    loop = asyncio.get_running_loop()
    done, moved_at = 0, loop.time()
    while done < jobs:
        await asyncio.sleep(LOOK_CLOSE_S if done >= jobs * CLOSE else LOOK_S)
        child.check()
        seen = await gauges.settled(ground.db, ground.number)
        if seen > done:
            done, moved_at = seen, loop.time()
        elif loop.time() - moved_at > STALL_S:
            raise Spoiled(f"{jobs - done} of {jobs} jobs have no outcome, and no more come")
    return ground.clock.now()


async def _check(ground: Ground, jobs: int) -> None:
    """Every job was sent, and once."""
    found = await gauges.ends(ground.db, ground.number)
    if found != {State.SENT: jobs}:
        told = ", ".join(f"{State(state).name.lower()} {count}" for state, count in found.items())
        raise Spoiled(f"of {jobs} jobs the outcomes are: {told}")


async def _eighths(ground: Ground, jobs: int, due: datetime) -> tuple[float, float] | None:
    """None when a single commit holds the last one."""
    first, seventh, last = await gauges.settled_at(ground.db, ground.number, EIGHTHS)
    share = jobs / 8
    if last == seventh or first <= due:
        return None
    return share / (first - due).total_seconds(), share / (last - seventh).total_seconds()


@asynccontextmanager
async def _snapshot(ground: Ground, options: Options) -> AsyncIterator[None]:
    """An idle transaction whose snapshot keeps every dead tuple, if that is asked for."""
    if not options.pinned:
        yield
        return
    session = await open_session(
        ground.url,
        application_name="tocsin bench snapshot",
        settings={"idle_in_transaction_session_timeout": "0"},
    )
    try:
        async with session.transaction("repeatable_read", readonly=True):
            await gauges.wal_bytes(session)
            yield
    finally:
        await session.close()


def _notes(run: Run, options: Options) -> tuple[tuple[str, str], ...]:
    by_size = sorted(run.disk.items(), key=lambda item: -item[1])
    disk = ", ".join(f"{name} {size / options.jobs:.0f}" for name, size in by_size if size > 0)
    held = "an old snapshot held open" if options.pinned else "no old snapshot"
    return (
        ("provider", f"log, {options.provider_batch} messages in one call; {held}"),
        ("eighths", _told(run.eighths)),
        ("enqueue", f"{run.enqueue_wal:.0f} bytes of WAL for each job, before the drain"),
        ("disk", f"bytes for each job: {disk}"),
    )


def _told(eighths: tuple[float, float] | None) -> str:
    if eighths is None:
        return "too few jobs"
    first, last = eighths
    return f"first {first:,.0f}/s, last {last:,.0f}/s, last to first {last / first:.2f}"
