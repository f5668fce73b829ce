"""Stage: a temporary directory, a real SMTP server and a real `tocsin dev`, and nothing left of them."""

import asyncio
import fcntl
import os
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from tocsin.faces.cli.demo.missed import Missed
from tocsin.faces.cli.ports import DevReady
from tocsin.settings import variables
from tocsin.store.devserver_account import Account, dying_with_us

#: A new database cluster on a slow disk.
READY_S: Final = 120.0
STOP_S: Final = 40.0
LOG_TAIL: Final = 3_000
SENDER: Final = "hello@demo.example"
#: A ready line is longer than a stream's default limit only when something is very wrong.
_LINE_MAX: Final = 1 << 20
_PREFIX: Final = "tocsin-demo-"
_OURSELVES: Final = Account("", os.geteuid(), os.getegid(), other=False)

T = TypeVar("T")


class SinkReady(Struct, frozen=True):
    """What the SMTP server prints."""

    host: str
    port: int


class Stage(Struct, frozen=True):
    """journal: where the SMTP server writes down what it accepts; log: what `tocsin dev` says.

    env: of every process here.
    """

    dev: DevReady
    sink: SinkReady
    journal: Path
    log: Path
    env: dict[str, str]


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Everything runs while the block does, and is gone after it, however it ends."""
    if find_spec("aiosmtpd") is None:
        raise Missed("there is no SMTP server to send to", remedy="pip install 'tocsin[dev]'")
    async with AsyncExitStack() as stack:
        folder = _folder(stack)
        journal = folder / "mail.jsonl"
        env = _environment(folder)
        sink = await stack.enter_async_context(
            _running("the SMTP server", _sink_command(journal), env, folder / "smtp.log", SinkReady)
        )
        env |= {
            "EMAIL_PROVIDER": "smtp",
            "EMAIL_FROM": SENDER,
            "EMAIL_FROM_NAME": "Tocsin demo",
            "SMTP_HOST": sink.host,
            "SMTP_PORT": str(sink.port),
            "SMTP_SECURITY": "none",
        }
        log = folder / "dev.log"
        dev = await stack.enter_async_context(
            _running("tocsin dev", _dev_command(folder), env, log, DevReady)
        )
        yield Stage(dev, sink, journal, log, env | {"DATABASE_URL": dev.database_url})


def _folder(stack: AsyncExitStack) -> Path:
    """A new directory, removed with everything in it when the stack unwinds."""
    _forget_killed(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    # PostgreSQL runs as another user when we are root, and must be able to enter.
    folder.chmod(0o711)
    return folder


def _forget_killed(root: Path) -> None:
    """Remove what demos left that were killed: their processes died with them, and their locks."""
    for lock in root.glob(f"{_PREFIX}*/data/tocsin.lock"):
        with suppress(OSError), lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parents[1], ignore_errors=True)


def tail(log: Path) -> str:
    """The end of a log."""
    return log.read_text(errors="replace")[-LOG_TAIL:].strip()


def tocsin(*arguments: str) -> list[str]:
    """The command line that runs this very version."""
    return [sys.executable, "-m", "tocsin", *arguments]


def _sink_command(journal: Path) -> list[str]:
    module = "tocsin.simulators.smtp"
    return [sys.executable, "-m", module, "--port", "0", "--journal", str(journal), "--keep"]


def _dev_command(folder: Path) -> list[str]:
    return tocsin(
        "dev", "--port", "0", "--host", "127.0.0.1", "--data", str(folder / "data"), "--json"
    )


def _environment(folder: Path) -> dict[str, str]:
    """The user's, without any setting of a Tocsin of theirs."""
    known = set(variables().values())
    kept = {name: value for name, value in os.environ.items() if name not in known}
    # An empty file rather than a tocsin.toml that happens to lie here.
    config = folder / "tocsin.toml"
    config.touch()
    return kept | {"TOCSIN_CONFIG": str(config), "LOG_FORMAT": "console"}


@asynccontextmanager
async def _running(
    name: str, command: Sequence[str], env: dict[str, str], log: Path, shape: type[T]
) -> AsyncIterator[T]:
    """A process that says in one line of JSON that it is ready; stopped in good order at the end."""
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            *dying_with_us(signal.SIGTERM, _OURSELVES),
            *command,
            env=env,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=file,
            limit=_LINE_MAX,
            # Ctrl-C is ours to pass on: the one who sends must stop before the one who takes.
            start_new_session=True,
        )
    try:
        yield await _ready(name, process, log, shape)
    finally:
        await _stop(process)


async def _ready(name: str, process: Process, log: Path, shape: type[T]) -> T:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_S):
            line = await process.stdout.readline()
        return msgspec.json.decode(line, type=shape)
    except (TimeoutError, ValueError):
        raise Missed(f"{name} did not start; its log ends with:\n{tail(log)}") from None


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
