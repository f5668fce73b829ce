"""A private PostgreSQL that outlived its Tocsin: found by its pid file, and ended."""

import os
import shutil
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

FAST_S = 10.0
HARD_S = 5.0
POLL_S = 0.05


def stop_leftover(cluster: Path) -> None:
    """End a server that outlived its Tocsin; the lock says that no living one needs it."""
    pid_file = cluster / "postmaster.pid"
    try:
        pid = int(pid_file.read_text().partition("\n")[0])
    except (OSError, ValueError):
        return
    if not _is_alive(pid):
        return
    if not _is_server(pid, cluster):
        # The number went to another program since; PostgreSQL would take it for a server.
        pid_file.unlink(missing_ok=True)
        return
    for number, patience_s in (
        (signal.SIGINT, FAST_S),
        (signal.SIGQUIT, HARD_S),
        (signal.SIGKILL, HARD_S),
    ):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if _is_gone_within(pid, patience_s):
            return


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_server(pid: int, cluster: Path) -> bool:
    """Whether the process is PostgreSQL on this cluster; in doubt, yes."""
    if b"postgres" not in _command_of(pid):
        return False
    try:
        # It works in its data directory, under whatever name that was when it started.
        return Path(f"/proc/{pid}/cwd").samefile(cluster)
    except OSError:
        return True


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        ps = shutil.which("ps")
        if ps is None:
            return b"postgres"
        asked = [ps, "-o", "command=", "-p", str(pid)]
        return subprocess.run(asked, capture_output=True, check=False).stdout  # noqa: S603 - ps


def _is_gone_within(pid: int, patience_s: float) -> bool:
    pause = threading.Event()
    for _ in range(int(patience_s / POLL_S)):
        if not _is_alive(pid):
            return True
        pause.wait(POLL_S)
    return not _is_alive(pid)
