"""Machine: what the figures were measured on: processors, versions, and what a flush costs."""

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tocsin.faces.cli.bench.report import Machine

SYNCS: Final = 200
PAGE: Final = b"\0" * 8_192


def describe(version: tuple[int, int], data: Path | None) -> Machine:
    """data: PostgreSQL's directory, or one on the same filesystem; None when it is elsewhere."""
    return Machine(
        cpus=_processors(),
        postgres=".".join(map(str, version)),
        python=platform.python_version(),
        fsync_us=None if data is None else fsync_us(data),
    )


def fsync_us(folder: Path) -> float | None:
    """Median µs of writing one page and flushing it, as pg_test_fsync does; None if not permitted."""
    flush = getattr(os, "fdatasync", os.fsync)
    try:
        with tempfile.TemporaryFile(dir=folder, prefix="tocsin-bench-") as file:
            number = file.fileno()
            # In place: what is measured is the flush, not the growth of a file.
            os.pwrite(number, PAGE * 128, 0)
            flush(number)
            return round(statistics.median(_flushed(number, flush) for _ in range(SYNCS)) * 1e6, 1)
    except OSError:
        return None


def _flushed(number: int, flush: Callable[[int], None]) -> float:
    began = time.perf_counter()
    os.pwrite(number, PAGE, 0)
    flush(number)
    return time.perf_counter() - began


def _processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
