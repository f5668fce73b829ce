"""`tocsin demo` shows everything at work, says so when it does not, and leaves nothing."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.program import Program, running_with, temporary_folder, tocsin

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

BOUND_S = 60.0
#: What it prints first, and what it prints once everything runs.
STARTS, RUNS = "Tocsin demo", "(aiosmtpd)"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the demo makes its temporary directory."""
    with temporary_folder() as made:
        yield made


def demo(folder: Path):
    return tocsin("demo", "--people", "60", TMPDIR=str(folder))


def left_of(folder: Path) -> tuple[list[Path], dict[int, str]]:
    """Files, and processes that know the directory."""
    return list(folder.iterdir()), running_with(str(folder))


async def line_with(program: Program, text: str) -> None:
    """Return once it has printed that."""
    assert program.process.stdout is not None
    async with asyncio.timeout(BOUND_S):
        while text not in (await program.process.stdout.readline()).decode():
            assert not program.process.stdout.at_eof()


async def test_the_demo_shows_what_arrived_and_leaves_nothing(folder: Path) -> None:
    async with demo(folder) as program:
        code, shown, err = await program.end()

    assert (code, err) == (0, "")
    for said in (
        "Subject: Welcome, Ada",
        "From: Tocsin demo <hello@demo.example>",
        "your plan is Pro & Söhne <3.",
        "<b>Pro &amp; Söhne &lt;3</b>",
        "event: new_notification",
        "unread: 0 → 1",
        "60/60",
        "p50",
        "mails/s into the SMTP server",
        "60 people got one mail each, nobody got two",
        "no job is lost or in two places",
    ):
        assert said in shown
    assert left_of(folder) == ([], {})


@pytest.mark.parametrize("when", [STARTS, RUNS])
async def test_ctrl_c_ends_the_demo_and_all_that_it_started(folder: Path, when: str) -> None:
    async with demo(folder) as program:
        await line_with(program, when)
        code, shown, err = await program.stop(signal.SIGINT)

    assert code == 130
    assert "stopped; nothing is left" in shown
    assert "Traceback" not in err
    assert left_of(folder) == ([], {})


async def test_what_does_not_work_is_told_and_the_exit_code_says_so(folder: Path) -> None:
    async with demo(folder) as program:
        await line_with(program, RUNS)
        (dev,) = [
            pid for pid, command in running_with(str(folder)).items() if "tocsin dev" in command
        ]
        os.kill(dev, signal.SIGKILL)
        code, shown, err = await program.end()

    assert code == 1
    assert "All of it works" not in shown
    assert "error: " in err
    assert "Traceback" not in err
    assert left_of(folder) == ([], {})


async def test_a_killed_demo_takes_its_processes_along(folder: Path) -> None:
    async with demo(folder) as program:
        await line_with(program, RUNS)
        await program.stop(signal.SIGKILL)

    async def all_gone() -> bool:
        return not await asyncio.to_thread(running_with, str(folder))

    await eventually(all_gone)
