"""The simulated Resend fails as it is told to, and runs as a process of its own."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from tests.simulators.resend_bench import BOUND_S, MAIL, Bench, resend
from tocsin.simulators.fault import Fault
from tocsin.simulators.journal import Entry
from tocsin.wire.http import HttpClient, NoAnswer

# ------------------------------------------------------------------------------ faults


async def test_a_scripted_status_is_met_as_often_as_asked_and_then_honesty_returns() -> None:
    async with resend() as bench:
        bench.simulator.faults.add(
            Fault("status", 503, "<html>", {"retry-after": "9"}, times=2), Fault("none")
        )
        replies = [await bench.post(MAIL) for _ in range(4)]

    assert [reply.status for reply in replies] == [503, 503, 200, 200]
    assert (replies[0].body, replies[0].header("retry-after")) == (b"<html>", "9")
    assert len(bench.simulator.journal.entries) == 2
    assert bench.simulator.faults.total == 3


@pytest.mark.parametrize(
    ("fault", "accepted"),
    [
        (Fault("hang"), 0),
        (Fault("hang", accept=True), 1),
        (Fault("reset"), 0),
        (Fault("reset", accept=True), 1),
        (Fault("drop"), 0),
    ],
)
async def test_a_lost_answer_says_nothing_of_whether_the_mail_was_taken(fault, accepted) -> None:
    async with resend() as bench:
        bench.simulator.faults.add(fault)
        timeout_s = 0.2 if fault.kind == "hang" else BOUND_S
        failure = await bench.post(MAIL, key="k", timeout_s=timeout_s)

    assert isinstance(failure, NoAnswer)
    assert failure.code == ("timeout" if fault.kind == "hang" else "reset")
    assert len(bench.simulator.journal.entries) == accepted


async def test_faults_and_journal_are_reached_from_another_process() -> None:
    async with resend() as bench:
        refused = await bench.post([{"kind": "explode"}], "/_sim/faults")
        too_many = await bench.post([{"kind": "hang", "times": 10_001}], "/_sim/faults")
        taken = await bench.post([{"kind": "status", "status": 500}], "/_sim/faults")
        replies = [await bench.post(MAIL, key="k") for _ in range(2)]
        await bench.post([{"kind": "drop"}], "/_sim/faults")
        cleared = await bench.http.request(
            "DELETE", bench.url + "/_sim/faults", headers={}, timeout_s=BOUND_S
        )
        journal = await bench.http.request(
            "GET", bench.url + "/_sim/journal", headers={}, timeout_s=BOUND_S
        )
        after = await bench.post(MAIL)

    assert [each.status for each in (refused, too_many, taken, cleared)] == [400, 400, 200, 200]
    assert [reply.status for reply in replies] == [500, 200]
    assert [entry.key for entry in msgspec.json.decode(journal.body, type=list[Entry])] == ["k"]
    assert after.status == 200


# ------------------------------------------------------------------------------ a process


async def test_as_a_process_it_says_where_it_listens_and_keeps_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tocsin.simulators.resend", "--port", "0", "--journal", journal,
        "--requests-per-s", "1",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    http = HttpClient()
    try:
        line = await asyncio.wait_for(process.stdout.readline(), BOUND_S)
        where = msgspec.json.decode(line)
        bench = Bench(None, None, http, where["url"])
        reply = await bench.post(MAIL, key="k")
        lines = journal.read_bytes().splitlines()
    finally:
        process.terminate()
        code = await asyncio.wait_for(process.wait(), BOUND_S)
        await http.aclose()

    assert where["url"] == f"http://127.0.0.1:{where['port']}"
    assert reply.header("ratelimit-limit") == "1"
    assert [msgspec.json.decode(line, type=Entry).key for line in lines] == ["k"]
    assert code == 0
