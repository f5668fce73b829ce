"""`tocsin bench`: drain, enqueue, send, wakeup and streams, each with its floor in the same run."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Final

import structlog
import uvloop
from cyclopts import App, Parameter
from cyclopts.validators import Number
from rich.text import Text

from tocsin.faces.cli.bench import drain as draining
from tocsin.faces.cli.bench import enqueue as enqueueing
from tocsin.faces.cli.bench import machine
from tocsin.faces.cli.bench import send as sending
from tocsin.faces.cli.bench import streams as streaming
from tocsin.faces.cli.bench import wakeup as waking
from tocsin.faces.cli.bench.ground import Place, place
from tocsin.faces.cli.bench.report import (
    Figures,
    Report,
    print_notes,
    print_report,
    report_of,
)
from tocsin.faces.cli.exits import INTERRUPTED
from tocsin.faces.cli.options import Json
from tocsin.faces.cli.output import console, print_json

JOBS_MIN: Final = 8
JOBS_MAX: Final = 10_000_000
#: Below this the data is on no disk: a flush to one takes longer.
DISK_US: Final = 5.0

app = App(
    name="bench",
    help="Measure this machine, each figure beside its floor; bench/README.md says how to read them.",
    help_format="plaintext",
    result_action="return_value",
)

Jobs = Annotated[int, Parameter(validator=Number(gte=JOBS_MIN, lte=JOBS_MAX), help="Jobs.")]
Clients = Annotated[
    int, Parameter(validator=Number(gte=1, lte=20_000), help="Connections at one time.")
]
Writers = Annotated[int, Parameter(validator=Number(gte=1, lte=1_000), help="Concurrent senders.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Where:
    """What all benchmarks take."""

    database_url: Annotated[
        str | None,
        Parameter(help="Use this empty database; else a private PostgreSQL with its defaults."),
    ] = None
    yes: Annotated[
        bool, Parameter(negative="", help="Even if other projects use that database.")
    ] = False
    as_json: Json = False


DEFAULT: Final = Where()


@app.command
def drain(
    *,
    jobs: Jobs = 100_000,
    provider_batch: Annotated[
        int,
        Parameter(validator=Number(gte=1, lte=1_000), help="Messages in one call of the provider."),
    ] = 100,
    pinned_xmin: Annotated[
        bool,
        Parameter(negative="", help="Hold an old snapshot open, so that no tuple is vacuumed."),
    ] = False,
    where: Where = DEFAULT,
) -> int:
    """Deliver a campaign that is released at once, with one worker."""
    options = draining.Options(jobs, provider_batch, pinned_xmin)
    return _run("drain", where, lambda ground, say: draining.measure(ground, options, say))


@app.command
def enqueue(*, jobs: Jobs = 100_000, clients: Clients = 2, where: Where = DEFAULT) -> int:
    """Accept batches of 5,000 over HTTP."""
    options = enqueueing.Options(jobs, clients)
    return _run("enqueue", where, lambda ground, say: enqueueing.measure(ground, options, say))


@app.command
def send(*, jobs: Jobs = 20_000, clients: Clients = 8, where: Where = DEFAULT) -> int:
    """Accept single sends over HTTP."""
    options = sending.Options(jobs, clients)
    return _run("send", where, lambda ground, say: sending.measure(ground, options, say))


@app.command
def wakeup(*, jobs: Jobs = 200, where: Where = DEFAULT) -> int:
    """Time from a send into an idle system to the provider's call."""
    options = waking.Options(jobs)
    return _run("wakeup", where, lambda ground, say: waking.measure(ground, options, say))


@app.command
def streams(
    *, jobs: Jobs = 500, clients: Clients = 1_000, writers: Writers = 4, where: Where = DEFAULT
) -> int:
    """Time from a send to the event in one of many open inboxes; clients is how many are open."""
    options = streaming.Options(jobs, clients, writers)
    return _run("streams", where, lambda ground, say: streaming.measure(ground, options, say))


Say = Callable[[str], None]
Work = Callable[[Place, Say], Awaitable[Figures]]


def _run(name: str, where: Where, work: Work) -> int:
    with _warnings_only(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(_until_signal(name, where, work))
    if found is None:
        return INTERRUPTED
    report, notes = found
    if where.as_json:
        print_notes(notes)
        print_json(report)
    else:
        print_report(report, notes)
    return 0


@contextmanager
def _warnings_only() -> Iterator[None]:
    """Nothing but the figures goes to standard output."""
    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("warning"),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
    try:
        yield
    finally:
        structlog.configure(**before)


async def _until_signal(
    name: str, where: Where, work: Work
) -> tuple[Report, tuple[tuple[str, str], ...]] | None:
    """None when a signal ended it; everything that was started has ended in any case."""
    task = asyncio.ensure_future(_measured(name, where, work))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def _measured(
    name: str, where: Where, work: Work
) -> tuple[Report, tuple[tuple[str, str], ...]]:
    out = console(stderr=True)

    def say(text: str) -> None:
        out.print(Text(f"… {text}", style="dim"))

    say("starting")
    async with place(where.database_url, despite_others=where.yes) as ground:
        described = machine.describe(ground.version, ground.data)
        if described.fsync_us is not None and described.fsync_us < DISK_US:
            say("the data is in memory, where a flush costs nothing: TMPDIR names another place")
        figures = await work(ground, say)
    return report_of(name, figures, described), figures.notes
