"""Programs: `tocsin` as a process of its own, what it printed, and whether anything is left of it."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tests.support.eventually import eventually
from tocsin.settings import variables

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
BOUND_S = 60.0


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Not pytest's tmp_path: what root starts as somebody else cannot enter that."""
    folder = Path(tempfile.mkdtemp(prefix="tocsin-tests-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment(**more: str) -> dict[str, str]:
    """This process's, without a setting of Tocsin, and with this source tree first."""
    settings = {*variables().values(), "TOCSIN_CONFIG"}
    kept = {name: value for name, value in os.environ.items() if name not in settings}
    return kept | {"PYTHONPATH": str(ROOT / "src"), "NO_PROXY": "*", "LOG_FORMAT": "json"} | more


@dataclass
class Program:
    process: Process

    async def ready(self, shape: type[T]) -> T:
        """The first line it prints, as JSON."""
        assert self.process.stdout is not None
        async with asyncio.timeout(BOUND_S):
            line = await self.process.stdout.readline()
        if not line:
            raise AssertionError(f"it ended instead: {await self.end()}")
        return msgspec.json.decode(line, type=shape)

    async def logged(self, event: str) -> dict[str, Any]:
        """The next line of its log with that event."""
        assert self.process.stderr is not None
        async with asyncio.timeout(BOUND_S):
            async for line in self.process.stderr:
                said = msgspec.json.decode(line)
                if said["event"] == event:
                    return said
        raise AssertionError(f"it ended without {event}")

    async def end(self) -> tuple[int, str, str]:
        """Its exit code and the rest of its two outputs, once it has ended."""
        async with asyncio.timeout(BOUND_S):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, out.decode(), err.decode()

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        return await self.end()


@asynccontextmanager
async def tocsin(*arguments: str, **env: str) -> AsyncIterator[Program]:
    """`tocsin …` while the block runs; killed at its end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tocsin",
        *arguments,
        env=environment(**env),
        cwd="/",
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        limit=1 << 20,
    )
    program = Program(process)
    try:
        yield program
    finally:
        if process.returncode is None:
            process.kill()
            await program.end()


def postmaster_of(data: str | Path) -> int:
    """The process id of the PostgreSQL that runs on this data."""
    return int((Path(data) / "postgres" / "postmaster.pid").read_text().partition("\n")[0])


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie has ended; whoever adopts it has not looked yet.
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


async def gone(pid: int) -> None:
    """Return once that process has ended."""

    async def is_gone() -> bool:
        # Asked in a thread, so that waiting does not keep the processor from whoever is to end.
        return not await asyncio.to_thread(is_running, pid)

    await eventually(is_gone)


def running_with(text: str) -> dict[int, str]:
    """Process ids and command lines of all that were started with this text in their arguments."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in command and is_running(int(entry.name)):
            found[int(entry.name)] = command
    return found
