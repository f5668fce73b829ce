"""Children: `tocsin serve` and `tocsin worker` as processes of their own, and nothing left of them."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

import tocsin
from tocsin.faces.cli.bench.ground import Ground
from tocsin.faces.cli.bench.spoiled import Spoiled
from tocsin.faces.cli.ports import ServeReady
from tocsin.settings import variables
from tocsin.store import workers
from tocsin.store.devserver_account import Account, dying_with_us

READY_S: Final = 60.0
STOP_S: Final = 40.0
LOOK_S: Final = 0.02
LOG_TAIL: Final = 2_000
#: A new worker's loops and caches are as they stay after this long.
SETTLE_S: Final = 1.0
_LINE_MAX: Final = 1 << 20
_OURSELVES: Final = Account("", os.geteuid(), os.getegid(), other=False)

T = TypeVar("T")


class Child(Struct, frozen=True):
    """A running process; log: what it says."""

    process: Process
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def check(self) -> None:
        """Raise if it has ended."""
        if self.process.returncode is not None:
            raise Spoiled(
                f"a process of the benchmark ended by itself; its log ends with:\n{tail(self.log)}",
                remedy="correct what the log says",
            )


class Serving(Struct, frozen=True):
    """An API that answers."""

    child: Child
    url: str


@asynccontextmanager
async def serve(ground: Ground, folder: Path, env: Mapping[str, str]) -> AsyncIterator[Serving]:
    """A running `tocsin serve` on a free port of the loopback."""
    command = tocsin_command("serve", "--host", "127.0.0.1", "--port", "0", "--json")
    async with running(command, _env(ground, folder, env), folder / "serve.log") as child:
        ready = await said(child, ServeReady)
        yield Serving(child, ready.url)


@asynccontextmanager
async def worker(ground: Ground, folder: Path, env: Mapping[str, str]) -> AsyncIterator[Child]:
    """A running `tocsin worker` that has shown progress and has come to rest."""
    started_at = ground.clock.now()
    environment = _env(ground, folder, env)
    async with running(tocsin_command("worker"), environment, folder / "worker.log") as child:
        async with _bounded("the worker", child):
            while not any(
                row.started_at >= started_at
                for row in await workers.alive(ground.db, now=ground.clock.now())
            ):
                child.check()
                await asyncio.sleep(LOOK_S)
        await asyncio.sleep(SETTLE_S)
        yield child


@asynccontextmanager
async def running(
    command: Sequence[str], env: Mapping[str, str], log: Path
) -> AsyncIterator[Child]:
    """A process while the block runs; it is told to end afterwards, and ends with us."""
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            *dying_with_us(signal.SIGTERM, _OURSELVES),
            *command,
            env=dict(env),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=file,
            limit=_LINE_MAX,
            # Ctrl-C is ours to pass on.
            start_new_session=True,
        )
    try:
        yield Child(process, log)
    finally:
        await _stop(process)


async def said(child: Child, shape: type[T]) -> T:
    """The first line that a process prints, as JSON."""
    assert child.process.stdout is not None
    async with _bounded("a process", child):
        line = await child.process.stdout.readline()
    try:
        return msgspec.json.decode(line, type=shape)
    except msgspec.MsgspecError:
        raise Spoiled(
            f"a process did not start; its log ends with:\n{tail(child.log)}",
            remedy="correct what the log says",
        ) from None


def tocsin_command(*arguments: str) -> list[str]:
    """The command line that runs this very version."""
    return [sys.executable, "-m", "tocsin", *arguments]


def clean_environment(folder: Path) -> dict[str, str]:
    """The user's, without any setting of a Tocsin of theirs, and with this source first."""
    known = set(variables().values())
    kept = {name: value for name, value in os.environ.items() if name not in known}
    # An empty file rather than a tocsin.toml that happens to lie here.
    config = folder / "tocsin.toml"
    config.touch()
    source = [str(Path(tocsin.__file__).parents[1]), kept.get("PYTHONPATH", "")]
    return kept | {
        "PYTHONPATH": os.pathsep.join(filter(None, source)),
        "TOCSIN_CONFIG": str(config),
        # A proxy of the user's must not be asked for what is on this machine.
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


def tail(log: Path) -> str:
    """The end of a log."""
    return log.read_text(errors="replace")[-LOG_TAIL:].strip()


def _env(ground: Ground, folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    # A line for each call of the provider `log` would be measured with it.
    quiet = {"DATABASE_URL": ground.url, "LOG_LEVEL": "warning"}
    return clean_environment(folder) | quiet | dict(more)


@asynccontextmanager
async def _bounded(name: str, child: Child) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(READY_S):
            yield
    except TimeoutError:
        raise Spoiled(
            f"{name} was not ready within {READY_S:.0f} s; its log ends with:\n{tail(child.log)}"
        ) from None


async def _stop(process: Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        process.send_signal(number)
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            continue
