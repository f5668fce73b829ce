"""The demo sees every mail once, as it is accepted, and says what did not come."""

import asyncio
from pathlib import Path

import pytest

from tocsin.faces.cli.demo import mailbox as module
from tocsin.faces.cli.demo.campaign import check_each_once, quantile
from tocsin.faces.cli.demo.mailbox import Mailbox
from tocsin.faces.cli.demo.missed import Missed
from tocsin.simulators.smtp_mail import Mailbook

BOUND_S = 20.0


def take(journal: Path, *addresses: str) -> None:
    book = Mailbook(journal, keep=True)
    for address in addresses:
        book.take("hello@demo.example", (address,), b"Subject: x\r\n\r\nbody\r\n")
    book.close()


def persons(count: int) -> list[str]:
    return [f"person-{number}@people.example" for number in range(count)]


def test_before_the_first_mail_there_is_none(tmp_path: Path) -> None:
    assert Mailbox(tmp_path / "mail.jsonl").look() == 0


def test_a_line_that_is_half_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    written = tmp_path / "whole.jsonl"
    take(written, "a@b.example", "c@d.example")
    lines = written.read_bytes()
    growing = tmp_path / "mail.jsonl"
    mailbox = Mailbox(growing)

    growing.write_bytes(lines[:-5])
    assert mailbox.look() == 1
    growing.write_bytes(lines)
    assert mailbox.look() == 2
    assert [mail.recipients for mail in mailbox.mails] == [("a@b.example",), ("c@d.example",)]
    assert mailbox.mails[0].raw == b"Subject: x\r\n\r\nbody\r\n"


async def test_waiting_ends_with_the_last_mail_and_tells_each_step(tmp_path: Path) -> None:
    journal = tmp_path / "mail.jsonl"
    mailbox = Mailbox(journal)
    told: list[int] = []

    def tell(count: int) -> None:
        told.append(count)
        if count < 3:
            take(journal, f"{count}@b.example")

    async with asyncio.timeout(BOUND_S):
        await mailbox.until(3, tell=tell)

    assert told == [0, 1, 2, 3]


async def test_mails_that_stop_coming_are_counted_as_missing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "STALL_S", 0.01)
    take(tmp_path / "mail.jsonl", "a@b.example")

    with pytest.raises(Missed, match="2 of 3 mails have not arrived"):
        async with asyncio.timeout(BOUND_S):
            await Mailbox(tmp_path / "mail.jsonl").until(3)


@pytest.mark.parametrize(
    ("arrived", "said"),
    [
        (persons(3), None),
        ([*persons(3), "single-1@people.example"], None),
        (persons(2), "1 got nothing and 0 more than one; 0 others"),
        ([*persons(3), *persons(1)], "0 got nothing and 1 more than one; 0 others"),
        (persons(4), "0 got nothing and 0 more than one; 1 others"),
    ],
)
def test_the_batch_is_proved_only_by_one_mail_for_each_person(
    arrived: list[str], said: str | None, tmp_path: Path
) -> None:
    take(tmp_path / "mail.jsonl", *arrived)
    mailbox = Mailbox(tmp_path / "mail.jsonl")
    mailbox.look()

    if said is None:
        check_each_once(mailbox, 3)
        return
    with pytest.raises(Missed, match=said):
        check_each_once(mailbox, 3)


def test_quantiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(1, 101)]

    assert [quantile(values, part) for part in (0.5, 0.99, 1.0)] == [50.0, 99.0, 100.0]
    assert quantile([7.0], 0.5) == 7.0
