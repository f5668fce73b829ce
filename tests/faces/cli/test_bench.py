"""Every benchmark, small: what it prints, that its floor was in the same run, and what it leaves."""

import signal
from typing import Any

import msgspec
import pytest

from tests.faces.cli.conftest import Run
from tests.support.postgres import in_thread
from tests.support.program import is_running, temporary_folder, tocsin
from tocsin.faces.cli.exits import FAILED, INTERRUPTED
from tocsin.store import gauges
from tocsin.store.invariants import violations
from tocsin.store.pool import Database

NUMBERS = (
    "p50_ms",
    "p99_ms",
    "wal_bytes_per_job",
    "dead_tuples_per_job",
    "disk_bytes_per_job",
)
KEYS = {
    *("name", "jobs", "seconds", "rate", "floor_rate", "ratio"),
    *("cpu_us_per_job", "rss_mb", "machine"),
    *NUMBERS,
}
#: The arguments of each, and the numbers that do not apply to it.
COMMANDS = {
    "drain": (("--jobs", "600"), {"p50_ms", "p99_ms"}),
    "enqueue": (("--jobs", "600", "--clients", "2"), {"disk_bytes_per_job"}),
    "send": (("--jobs", "100", "--clients", "4"), {"disk_bytes_per_job"}),
    "wakeup": (("--jobs", "8"), {*NUMBERS[2:]}),
    "streams": (("--jobs", "12", "--clients", "30", "--writers", "3"), {*NUMBERS[2:]}),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_prints_one_object_with_its_floor_and_leaves_nothing(
    run: Run, capfd: pytest.CaptureFixture[str], database_url: str, name: str
) -> None:
    arguments, absent = COMMANDS[name]

    code = run("bench", name, *arguments, "--database-url", database_url, "--json")

    out, err = capfd.readouterr()
    assert code == 0, err
    found: dict[str, Any] = msgspec.json.decode(out)
    assert set(found) == KEYS
    assert (found["name"], found["jobs"]) == (name, int(arguments[1]))
    assert {key for key in NUMBERS if found[key] is None} == absent
    assert min(found[key] for key in ("seconds", "rate", "floor_rate", "ratio")) > 0
    assert found["ratio"] == pytest.approx(found["rate"] / found["floor_rate"], rel=0.01)
    assert found["p50_ms"] is None or found["p50_ms"] <= found["p99_ms"]
    assert set(found["cpu_us_per_job"]) == {"app", "postgres"}
    assert found["rss_mb"]["peak"] >= found["rss_mb"]["idle"] > 10
    assert set(found["machine"]) == {"cpus", "postgres", "python", "fsync_us"}
    assert in_thread(_left(database_url)) == (0, 0, [])


def test_a_drain_into_a_provider_without_batches_beside_an_old_snapshot_leaves_no_server(
    run: Run, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with temporary_folder() as folder, monkeypatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(folder))

        code = run("bench", "drain", "--jobs", "200", "--provider-batch", "1", "--pinned-xmin")

        assert list(folder.iterdir()) == []
    out, err = capfd.readouterr()
    assert code == 0, err
    assert "1 messages in one call; an old snapshot held open" in out
    assert "floor" in out
    assert "fsync" in out


def test_a_database_that_somebody_else_uses_is_refused(
    run: Run, capfd: pytest.CaptureFixture[str], database_url: str
) -> None:
    in_thread(_add_project(database_url))

    code = run("bench", "send", "--jobs", "8", "--database-url", database_url, "--json")

    out, err = capfd.readouterr()
    assert (code, out) == (FAILED, "")
    assert "the database holds 1 projects" in err
    assert "--yes" in err


async def test_a_signal_ends_a_benchmark_and_everything_it_started() -> None:
    with temporary_folder() as folder:
        async with tocsin("bench", "wakeup", "--jobs", "1000", TMPDIR=str(folder)) as program:
            assert program.process.stderr is not None
            async for line in program.process.stderr:
                if b"sends, one at a time" in line:
                    break
            [pid_file] = folder.glob("tocsin-bench-*/data/postgres/postmaster.pid")
            server = int(pid_file.read_text().partition("\n")[0])

            code, out, err = await program.stop(signal.SIGTERM)

        assert (code, out) == (INTERRUPTED, ""), err
        assert not is_running(server)
        assert list(folder.iterdir()) == []


async def _left(url: str) -> tuple[int, int, list[Any]]:
    """Projects, whatever they are called; whether anything waits; broken invariants."""
    async with await Database.open(url, application_name="tests") as db:
        projects = await gauges.other_projects(db, "nobody")
        busy = await gauges.is_busy(db)
        return projects, int(busy), await violations(db)


async def _add_project(url: str) -> None:
    async with await Database.open(url, application_name="tests") as db:
        await db.rows(
            gauges.Query("add", "INSERT INTO projects (id, name, channels, created_at, updated_at)"
                         " VALUES ('acme', 'Acme', '{email}', now(), now()) RETURNING 1")
        )  # fmt: skip
