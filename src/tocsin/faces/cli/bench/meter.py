"""Meter: what Tocsin and PostgreSQL used between two moments."""

import time

from msgspec import Struct

from tocsin.faces.cli.bench.ground import Ground
from tocsin.faces.cli.bench.process import cpu_s, family_cpu_s
from tocsin.faces.cli.bench.report import Cpu
from tocsin.store import gauges


class Reading(Struct, frozen=True):
    """Seconds of clock and of processors, bytes of WAL."""

    at: float
    app_s: float | None
    postgres_s: float | None
    wal: int


class Used(Struct, frozen=True):
    """What lies between two readings, for each job."""

    seconds: float
    cpu: Cpu
    wal_bytes: float


async def read(ground: Ground, app: int) -> Reading:
    """app: the process whose time counts as Tocsin's."""
    wal = await gauges.wal_bytes(ground.db)
    postgres_s = None if ground.server is None else family_cpu_s(ground.server)
    return Reading(time.perf_counter(), cpu_s(app), postgres_s, wal)


def used(before: Reading, after: Reading, jobs: int) -> Used:
    """For each of `jobs`."""
    return Used(
        seconds=after.at - before.at,
        cpu=Cpu(
            _per_job(before.app_s, after.app_s, jobs),
            _per_job(before.postgres_s, after.postgres_s, jobs),
        ),
        wal_bytes=(after.wal - before.wal) / jobs,
    )


def _per_job(before: float | None, after: float | None, jobs: int) -> float | None:
    """µs for each job."""
    return None if before is None or after is None else (after - before) / jobs * 1e6
