"""`tocsin demo`: what a newcomer runs first, and what CI runs to see that all of it works."""

import asyncio
import os
import signal
import time
from asyncio.subprocess import PIPE
from contextlib import AsyncExitStack
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console

from tocsin.faces.cli.demo.api import Api
from tocsin.faces.cli.demo.campaign import Campaign, check_each_once, quantile, run_campaign
from tocsin.faces.cli.demo.mailbox import Mailbox
from tocsin.faces.cli.demo.missed import Missed
from tocsin.faces.cli.demo.scenes import show_email, show_inbox
from tocsin.faces.cli.demo.stage import Stage, stage, tail, tocsin
from tocsin.faces.cli.doctor import Report
from tocsin.faces.cli.exits import INTERRUPTED
from tocsin.faces.cli.output import console, print_facts

PEOPLE: Final = 10_000
PEOPLE_MAX: Final = 100_000
DOCTOR_S: Final = 120.0

_LOOPBACK: Final = "127.0.0.1,localhost"


def demo(
    *,
    people: Annotated[
        int,
        Parameter(help="Size of the batch.", validator=Number(gte=1, lte=PEOPLE_MAX)),
    ] = PEOPLE,
) -> int:
    """Start everything in a temporary directory, send real mail and a live message, and check it.

    One email, one inbox message, a batch. Exits with 1 if anything is missing; leaves nothing.
    """
    # A proxy of the user's must not be asked for what is on this machine.
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), _LOOPBACK]))
    return asyncio.run(_until_signal(people, console()))


async def _until_signal(people: int, out: Console) -> int:
    task = asyncio.ensure_future(_show(people, out))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        out.print("\nstopped; nothing is left of it")
        return INTERRUPTED
    return 0


async def _show(people: int, out: Console) -> None:
    started = time.perf_counter()
    out.print("\n[bold]Tocsin demo[/]: PostgreSQL, API, worker and a real SMTP server\n")
    async with AsyncExitStack() as stack:
        with out.status("starting"):
            place = await stack.enter_async_context(stage())
        print_facts(
            out,
            [
                ("API", place.dev.url),
                ("SMTP server", f"{place.sink.host}:{place.sink.port} (aiosmtpd)"),
                ("Data", f"{place.dev.data_dir}, removed at the end"),
            ],
        )
        api = Api(place.dev.url, place.dev.api_key or "")
        stack.push_async_callback(api.aclose)
        try:
            await _play(place, api, people, out)
        except Missed:
            console(stderr=True).print(tail(place.log), markup=False)
            raise
    took_s = time.perf_counter() - started
    out.print(f"\n[bold green]All of it works[/] ({took_s:.0f} s, nothing is left behind).")
    out.print("Next: `tocsin dev` keeps running and prints a key and a first request.\n")


async def _play(place: Stage, api: Api, people: int, out: Console) -> None:
    mailbox = Mailbox(place.journal)
    out.print("\n[bold]One email[/], from a template, with variables, over SMTP")
    await show_email(api, mailbox, out)
    out.print("\n[bold]One inbox message[/], with a client connected to its event stream")
    await show_inbox(api, place.dev.url, out)
    out.print(f"\n[bold]A batch[/] to {people:,} people, over SMTP")
    campaign = await run_campaign(api, mailbox, people, out)
    print_facts(out, _summary(campaign))
    check_each_once(mailbox, people)
    _tick(out, f"{people:,} people got one mail each, nobody got two")
    await _check_invariants(place)
    _tick(out, "no job is lost or in two places (tocsin doctor --invariants)")


async def _check_invariants(place: Stage) -> None:
    """Ask the doctor, in a process of its own, as an operator would."""
    process = await asyncio.create_subprocess_exec(
        *tocsin("doctor", "--invariants", "--json"), env=place.env, stdout=PIPE
    )
    try:
        async with asyncio.timeout(DOCTOR_S):
            said, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        raise Missed(f"the doctor gave no answer within {DOCTOR_S:.0f} s") from None
    try:
        report = msgspec.json.decode(said, type=Report)
    except msgspec.MsgspecError:
        raise Missed("the doctor gave no report") from None
    if not report.healthy:
        told = [f.message for f in report.findings if f.severity == "critical"]
        raise Missed("; ".join(["the doctor found something", *told]))


def _summary(campaign: Campaign) -> list[tuple[str, str]]:
    half, most = (quantile(campaign.latencies_ms, part) for part in (0.5, 0.99))
    return [
        ("one send", f"p50 {half:.1f} ms, p99 {most:.1f} ms from the call to SMTP acceptance"),
        (
            "accepted",
            f"{campaign.people:,} jobs committed in one call of {campaign.answered_s:.2f} s",
        ),
        (
            "delivered",
            f"{campaign.sent_s:.1f} s, {campaign.rate:,.0f} mails/s into the SMTP server",
        ),
    ]


def _tick(out: Console, text: str) -> None:
    out.print(f"[green]✓[/] {text}")
