"""Process: processor time and memory of running processes, from /proc; None where there is none."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
# Places in /proc/PID/stat after the name (proc(5) counts from 1, with the name second).
_PARENT: Final = 4 - 3
_TIMES: Final = slice(14 - 3, 18 - 3)


def cpu_s(pid: int) -> float | None:
    """Seconds of processor time of a process and of its children that have ended."""
    fields = _stat(pid)
    return None if fields is None else _seconds(fields)


def family_cpu_s(pid: int) -> float | None:
    """The same, and of its children that run: a PostgreSQL's, by its first process."""
    fields = _stat(pid)
    if fields is None:
        return None
    return _seconds(fields) + sum(_seconds(child) for child in _children(pid))


def rss_mb(pid: int) -> float | None:
    """Resident memory, in 10⁶ bytes."""
    return _memory(pid, "VmRSS")


def peak_rss_mb(pid: int) -> float | None:
    """The most it ever was, in 10⁶ bytes."""
    return _memory(pid, "VmHWM")


def server_of(backend: int) -> int | None:
    """The first process of the PostgreSQL of a backend on this machine; None if it is not one."""
    try:
        title = (_PROC / str(backend) / "cmdline").read_bytes()
    except OSError:
        return None
    fields = _stat(backend)
    # Where PostgreSQL is in a container its process numbers are not ours.
    return int(fields[_PARENT]) if fields and title.startswith(b"postgres:") else None


def _children(pid: int) -> Iterator[list[str]]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields is not None and fields[_PARENT] == str(pid):
                yield fields


def _stat(pid: int) -> list[str] | None:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _seconds(fields: list[str]) -> float:
    return sum(map(int, fields[_TIMES])) / _TICKS_PER_S


def _memory(pid: int, name: str) -> float | None:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return None
    found = next((line.split() for line in lines if line.startswith(f"{name}:")), None)
    return None if found is None else int(found[1]) * 1024 / 1e6
