"""Campaign: how quick one send is, how many a batch does in a second, and that none is lost or doubled."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from tocsin.faces.cli.demo.api import Api
from tocsin.faces.cli.demo.mailbox import PROGRESS_LOOK_S, Mailbox
from tocsin.faces.cli.demo.missed import Missed

#: Single sends, one after the other, whose latency is told.
SINGLES: Final = 200
#: Calls at one time while people are stored.
STORING: Final = 32


class Campaign(Struct, frozen=True):
    """What was measured. latencies_ms: of single sends, from the call to the server's acceptance."""

    people: int
    stored_s: float
    answered_s: float
    sent_s: float
    latencies_ms: list[float]

    @property
    def rate(self) -> float:
        """Mails a second, from the call to the last acceptance."""
        return self.people / self.sent_s


async def run_campaign(api: Api, mailbox: Mailbox, people: int, out: Console) -> Campaign:
    """Store the people, send singles, send the batch; Missed unless each got it exactly once."""
    with _progress(out) as progress:
        started = time.perf_counter()
        await _store(api, people, progress)
        stored_s = time.perf_counter() - started
        latencies = await _send_singles(api, mailbox, progress)
        before = mailbox.look()
        sending = progress.add_task("delivering the batch", total=people)
        started = time.perf_counter()
        answer = await api.post(
            "/v1/batch",
            channel="email",
            subscribers=[_person(number) for number in range(people)],
            subject="News for {{first_name}}",
            body="Hello {{first_name}}, this is your letter.\n",
            body_html="<p>Hello {{first_name}}, this is your letter.</p>",
        )
        answered_s = time.perf_counter() - started
        if answer["jobs_created"] != people:
            raise Missed(f"the batch made {answer['jobs_created']} jobs of {people}")
        await mailbox.until(
            before + people,
            look_s=PROGRESS_LOOK_S,
            tell=lambda count: progress.update(sending, completed=count - before),
        )
        sent_s = time.perf_counter() - started
    return Campaign(people, stored_s, answered_s, sent_s, latencies)


def check_each_once(mailbox: Mailbox, people: int) -> None:
    """Missed unless every person of the campaign got exactly one mail, and nobody else any."""
    got = Counter(
        recipient
        for mail in mailbox.mails
        for recipient in mail.recipients
        if recipient.startswith("person-")
    )
    wanted = {_address(number) for number in range(people)}
    missing = wanted - got.keys()
    strangers = got.keys() - wanted
    doubled = [address for address, count in got.items() if count > 1]
    if missing or strangers or doubled:
        raise Missed(
            f"of {people} people {len(missing)} got nothing and {len(doubled)} more than one; "
            f"{len(strangers)} others got mail"
        )


def quantile(values: Sequence[float], part: float) -> float:
    """The value that this part of all is not above (nearest rank)."""
    ranked = sorted(values)
    return ranked[max(0, -(-int(part * 1000) * len(ranked) // 1000) - 1)]


async def _store(api: Api, people: int, progress: Progress) -> None:
    task = progress.add_task("storing people", total=people)
    numbers: Iterator[int] = iter(range(people))

    async def store() -> None:
        for number in numbers:
            await api.post(
                "/v1/subscribers",
                id=_person(number),
                email=_address(number),
                first_name=f"Person {number}",
            )
            progress.advance(task)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(STORING):
                group.create_task(store())
    except* Missed as missed:
        # All failed for one reason; it is told once.
        raise missed.exceptions[0] from None


async def _send_singles(api: Api, mailbox: Mailbox, progress: Progress) -> list[float]:
    task = progress.add_task("sending one by one", total=SINGLES)
    latencies = []
    for number in range(SINGLES):
        there = mailbox.look()
        started = time.perf_counter()
        await api.post(
            "/v1/send",
            channel="email",
            to=f"single-{number}@people.example",
            subject="Your code",
            body="It is 424242.",
        )
        await mailbox.until(there + 1)
        latencies.append((time.perf_counter() - started) * 1e3)
        progress.advance(task)
    return latencies


def _person(number: int) -> str:
    return f"person-{number}"


def _address(number: int) -> str:
    return f"person-{number}@people.example"


def _progress(out: Console) -> Progress:
    return Progress(
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description:22}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=out,
    )
