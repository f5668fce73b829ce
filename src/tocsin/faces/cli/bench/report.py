"""Report: the one object that `--json` prints, and the same as a table for people."""

import math
from collections.abc import Sequence

from msgspec import Struct
from rich.text import Text

from tocsin.faces.cli.output import console, print_facts, table


class Cpu(Struct, frozen=True):
    """Processor time for each job, in µs: of Tocsin's process, and of all of PostgreSQL's."""

    app: float | None = None
    postgres: float | None = None


class Rss(Struct, frozen=True):
    """Resident memory of Tocsin's process, in 10⁶ bytes."""

    idle: float | None = None
    peak: float | None = None


class Machine(Struct, frozen=True):
    """fsync_us: median of writing 8 kB and fdatasync beside PostgreSQL's data; None where it cannot be reached."""

    cpus: int
    postgres: str
    python: str
    fsync_us: float | None


class Figures(Struct, frozen=True, kw_only=True):
    """What one benchmark found, per job where the name says so; None: does not apply.

    rate, floor_rate: jobs per second; of a latency, how many such trips fit in a second at p50.
    """

    jobs: int
    seconds: float
    rate: float
    floor_rate: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    cpu: Cpu = Cpu()
    wal_bytes: float | None = None
    dead_tuples: float | None = None
    disk_bytes: float | None = None
    rss: Rss = Rss()
    notes: tuple[tuple[str, str], ...] = ()


class Report(Struct, frozen=True):
    """What `tocsin bench … --json` prints."""

    name: str
    jobs: int
    seconds: float
    rate: float
    floor_rate: float
    ratio: float
    p50_ms: float | None
    p99_ms: float | None
    cpu_us_per_job: Cpu
    wal_bytes_per_job: float | None
    dead_tuples_per_job: float | None
    disk_bytes_per_job: float | None
    rss_mb: Rss
    machine: Machine


def report_of(name: str, figures: Figures, machine: Machine) -> Report:
    """Rounded to what was measured."""
    return Report(
        name=name,
        jobs=figures.jobs,
        seconds=round(figures.seconds, 3),
        rate=round(figures.rate, 1),
        floor_rate=round(figures.floor_rate, 1),
        ratio=round(figures.rate / figures.floor_rate, 3),
        p50_ms=_rounded(figures.p50_ms, 3),
        p99_ms=_rounded(figures.p99_ms, 3),
        cpu_us_per_job=Cpu(_rounded(figures.cpu.app, 1), _rounded(figures.cpu.postgres, 1)),
        wal_bytes_per_job=_rounded(figures.wal_bytes, 0),
        dead_tuples_per_job=_rounded(figures.dead_tuples, 3),
        disk_bytes_per_job=_rounded(figures.disk_bytes, 0),
        rss_mb=Rss(_rounded(figures.rss.idle, 1), _rounded(figures.rss.peak, 1)),
        machine=machine,
    )


def print_report(report: Report, notes: Sequence[tuple[str, str]]) -> None:
    """The figures below each other, the floor's beside the rate."""
    out = console()
    shown = table(f"tocsin bench {report.name}", "", "floor")
    shown.add_row("jobs", f"{report.jobs:,} in {report.seconds:,.2f} s", "")
    shown.add_row(
        "rate", f"{report.rate:,.0f}/s", f"{report.floor_rate:,.0f}/s, ratio {report.ratio:.2f}"
    )
    for name, value, unit in _rows(report):
        if value is not None:
            shown.add_row(name, f"{value:,.{_decimals(value)}f} {unit}", "")
    out.print(shown)
    if notes:
        out.print("")
        print_facts(out, notes)
    machine = report.machine
    synced = "fsync unknown" if machine.fsync_us is None else f"fsync {machine.fsync_us:,.0f} µs"
    told = f"{machine.cpus} CPUs, PostgreSQL {machine.postgres}, Python {machine.python}, {synced}"
    out.print(Text(f"\n{told}", style="dim"))


def print_notes(notes: Sequence[tuple[str, str]]) -> None:
    """What the JSON has no key for, where a program that reads it does not look."""
    if notes:
        print_facts(console(stderr=True), notes)


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * part) - 1)]


def spread(took_ms: Sequence[float]) -> str:
    """Half and nearly all of them, in words."""
    return f"p50 {quantile(took_ms, 0.5):.2f} ms, p99 {quantile(took_ms, 0.99):.2f} ms"


def _rows(report: Report) -> list[tuple[str, float | None, str]]:
    return [
        ("p50", report.p50_ms, "ms"),
        ("p99", report.p99_ms, "ms"),
        ("CPU of Tocsin", report.cpu_us_per_job.app, "µs/job"),
        ("CPU of PostgreSQL", report.cpu_us_per_job.postgres, "µs/job"),
        ("WAL", report.wal_bytes_per_job, "bytes/job"),
        ("dead tuples", report.dead_tuples_per_job, "per job"),
        ("disk", report.disk_bytes_per_job, "bytes/job"),
        ("memory idle", report.rss_mb.idle, "MB"),
        ("memory peak", report.rss_mb.peak, "MB"),
    ]


def _decimals(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
