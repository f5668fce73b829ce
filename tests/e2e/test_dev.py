"""`tocsin dev` as a newcomer and an impatient one use it: started, stopped, killed, started twice."""

import asyncio
import json
import os
import shutil
import signal
import socket
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.eventually import eventually
from tests.support.program import (
    environment,
    gone,
    is_running,
    postmaster_of,
    temporary_folder,
    tocsin,
)
from tocsin.faces.cli.demo.api import Api
from tocsin.faces.cli.demo.missed import Missed
from tocsin.faces.cli.ports import DevReady
from tocsin.store.pool import open_session
from tocsin.store.query import Query

ONE = Query("one", "SELECT count(*) FROM projects")


@pytest.fixture(scope="module")
def used() -> Iterator[Path]:
    """Data that `tocsin dev` has made; each test that uses it finds what the one before left."""
    with temporary_folder() as folder:
        yield folder / "data"


def dev(data: Path, *more: str, port: int | None = 0, **env: str):
    chosen = () if port is None else ("--port", str(port))
    return tocsin("dev", "--data", str(data), "--json", *chosen, *more, **env)


def is_listening(url: str) -> bool:
    address = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((address.hostname, address.port)) == 0


async def send_inbox(ready: DevReady, body: str) -> str:
    assert ready.api_key is not None
    api = Api(ready.url, ready.api_key)
    try:
        await api.post("/v1/subscribers", id="ada")
        reply = await api.post("/v1/send", channel="in_app", subscriber_id="ada", body=body)
        return reply["job_ids"][0]
    finally:
        await api.aclose()


async def send_email(ready: DevReady) -> str:
    assert ready.api_key is not None
    api = Api(ready.url, ready.api_key)
    try:
        reply = await api.post("/v1/send", channel="email", to="ada@example.com", body="Hello")
        return reply["job_ids"][0]
    finally:
        await api.aclose()


async def status(ready: DevReady, job_id: str) -> str:
    assert ready.api_key is not None
    api = Api(ready.url, ready.api_key)
    try:
        return (await api.get(f"/v1/jobs/{job_id}"))["status"]
    finally:
        await api.aclose()


async def test_ctrl_c_leaves_nothing_and_the_next_start_finds_data_and_keys_again(
    used: Path,
) -> None:
    async with dev(used) as program:
        first = await program.ready(DevReady)
        server = postmaster_of(used)
        job = await send_inbox(first, "kept")
        code, _, log = await program.stop(signal.SIGINT)

    assert code == 0
    assert '"event":"stopped"' in log
    assert "Traceback" not in log
    assert not is_running(server)
    assert not is_listening(first.url)
    assert first.data_dir == str(used)
    assert not first.reused

    async with dev(used) as program:
        second = await program.ready(DevReady)
        assert second.reused
        assert (second.api_key, second.operator_key) == (first.api_key, first.operator_key)
        assert await status(second, job) in ("sent", "processing", "pending")
        assert (await program.stop(signal.SIGTERM))[0] == 0


async def test_the_keys_are_kept_where_only_their_owner_reads_them(used: Path) -> None:
    async with dev(used) as program:
        ready = await program.ready(DevReady)
        kept = used / "dev-keys.json"

        assert json.loads(kept.read_text())["api_key"] == ready.api_key
        assert kept.stat().st_mode & 0o077 == 0


async def test_a_killed_dev_takes_its_postgres_along_and_the_next_start_recovers(
    used: Path,
) -> None:
    async with dev(used) as program:
        ready = await program.ready(DevReady)
        server = postmaster_of(used)
        job = await send_inbox(ready, "survives")
        await program.stop(signal.SIGKILL)
        await gone(server)

    async with dev(used) as program:
        again = await program.ready(DevReady)
        assert again.api_key == ready.api_key
        assert await status(again, job) in ("sent", "processing", "pending")


async def test_a_postgres_that_is_killed_is_started_again_and_sends_go_on(used: Path) -> None:
    async with dev(used) as program:
        ready = await program.ready(DevReady)
        before = await send_inbox(ready, "acknowledged before")
        os.kill(postmaster_of(used), signal.SIGKILL)
        await program.logged("devserver.ended")
        await program.logged("devserver.restarted")

        async def sends() -> str | None:
            # Connections of the pools may still turn out to be broken.
            with suppress(Missed):
                return await send_inbox(ready, "after")
            return None

        async with asyncio.timeout(30):
            while (after := await sends()) is None:
                pass
        await eventually(lambda: is_sent(ready, before, after))
        code, _, log = await program.stop()

    assert code == 0
    assert "Traceback" not in log


async def is_sent(ready: DevReady, *jobs: str) -> bool:
    return {await status(ready, job) for job in jobs} == {"sent"}


async def test_a_postgres_that_cannot_be_started_again_ends_dev_with_its_words(used: Path) -> None:
    config = used / "postgres" / "postgresql.conf"
    good = config.read_text()
    async with dev(used) as program:
        await program.ready(DevReady)
        config.write_text(f"{good}\nwork_mem = plenty\n")
        try:
            os.kill(postmaster_of(used), signal.SIGKILL)
            code, _, err = await program.end()
        finally:
            config.write_text(good)

    assert code == 1
    last = err[err.index("error: ") :]
    assert "PostgreSQL did not start" in last
    assert 'invalid value for parameter "work_mem"' in last
    assert "correct what the log says" in last
    assert "Traceback" not in err


async def test_email_that_nobody_configured_is_in_the_log_as_it_says(used: Path) -> None:
    async with dev(used) as program:
        ready = await program.ready(DevReady)
        assert ready.email == "log"
        job = await send_email(ready)
        line = await program.logged("logged_instead_of_sent")
        await program.stop()

    assert (line["level"], line["messages"], line["jobs"]) == ("info", 1, [job])
    assert "ada@example.com" not in str(line)


async def test_two_at_once_have_their_own_port_data_and_key(used: Path) -> None:
    async with dev(used, port=None) as one, dev(used, port=None) as other:
        both = [await one.ready(DevReady), await other.ready(DevReady)]
        # Either may have been the first to take the directory.
        first, second = sorted(both, key=lambda ready: str(ready.data_dir))

        assert len({first.url, second.url}) == 2
        assert {first.data_dir, second.data_dir} == {str(used), f"{used}-2"}
        assert first.api_key != second.api_key
        assert first.data_note is None
        assert f"{used} is in use" in str(second.data_note)
        async with tocsin("doctor", "--json", TOCSIN_DATA=str(used)) as doctor:
            found = json.loads((await doctor.end())[1])["findings"]
        assert f"{used}; more run on {used}-2" in str(found)
        await send_inbox(first, "here")
        await send_inbox(second, "there")
        assert (await one.stop())[0] == 0
        assert (await other.stop())[0] == 0


async def test_a_port_that_was_asked_for_and_is_taken_is_one_clear_line(used: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with dev(used, port=port) as program:
            code, out, err = await program.end()

    assert (code, out) == (1, "")
    assert err == (
        f"error: port {port} of 127.0.0.1 is in use; "
        "stop what listens there, or choose another with --port\n"
    )


async def test_the_curl_line_that_it_prints_works_as_it_is(used: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl here")
    async with tocsin("dev", "--data", str(used), "--port", "0") as program:
        assert program.process.stdout is not None
        lines = []
        async with asyncio.timeout(60):
            while not (lines and lines[-1].startswith("curl ")):
                lines.append((await program.process.stdout.readline()).decode())
        shell = await asyncio.create_subprocess_shell(
            lines[-1], env=environment(), stdout=PIPE, stderr=PIPE
        )
        out, err = await shell.communicate()

    assert err == b""
    reply = json.loads(out)
    assert reply["success"] is True
    assert len(reply["job_ids"]) == 1
    shown = "".join(lines)
    assert f"{used} (from the last start)" in shown
    assert "/docs" in shown


async def test_the_doctor_finds_a_dev_that_runs_and_nothing_critical_in_it(used: Path) -> None:
    async with dev(used) as program:
        await send_inbox(await program.ready(DevReady), "well")
        async with tocsin("doctor", "--json", "--invariants", TOCSIN_DATA=str(used)) as doctor:
            code, out, err = await doctor.end()
        await program.stop()

    report = json.loads(out)
    assert (code, err, report["healthy"]) == (0, "", True)
    codes = {finding["code"] for finding in report["findings"]}
    assert {"worker", "invariants", "email_only_logged"} <= codes
    # What dev fills in is in effect, though nobody configured it.
    assert not codes & {"email_not_configured", "email_settings_differ"}
    async with tocsin("doctor", TOCSIN_DATA=str(used)) as doctor:
        code, out, err = await doctor.end()
    assert (code, out) == (1, "")
    assert "no database is configured" in err


async def test_the_psql_line_names_a_password_that_opens_the_database(used: Path) -> None:
    async with dev(used) as program:
        ready = await program.ready(DevReady)
        assert ready.psql is not None
        password = (used / "password").read_text()
        assert password not in ready.psql
        # What psql would connect with; there is none in the wheel.
        port = ready.psql.split(" -p ")[1].split()[0]
        url = f"postgresql://tocsin:{password}@127.0.0.1:{port}/tocsin"
        session = await open_session(url, application_name="tests")
        try:
            assert await session.value(ONE) == 1
        finally:
            await session.close()


async def test_a_lost_key_can_be_replaced_and_the_old_one_ends(used: Path) -> None:
    (used / "dev-keys.json").unlink()
    async with dev(used) as program:
        assert (await program.ready(DevReady)).api_key is None
    async with dev(used, "--new-key") as program:
        fresh = await program.ready(DevReady)
        await send_inbox(fresh, "with the new key")
    async with dev(used) as program:
        assert (await program.ready(DevReady)).api_key == fresh.api_key


async def test_a_configured_database_is_used_instead_of_a_private_one(
    empty_database_url: str,
) -> None:
    async with tocsin("dev", "--json", "--port", "0", DATABASE_URL=empty_database_url) as program:
        ready = await program.ready(DevReady)

        assert (ready.data_dir, ready.psql) == (None, None)
        await send_inbox(ready, "elsewhere")


async def test_a_second_signal_ends_it_at_once_and_postgres_with_it(used: Path) -> None:
    async with dev(used) as program:
        ready = await program.ready(DevReady)
        server = postmaster_of(used)
        address = urlsplit(ready.url)
        _, writer = await asyncio.open_connection(address.hostname, address.port)
        # A request whose body does not come holds up a stop in good order for its whole grace.
        writer.write(
            b"POST /v1/send HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"x-api-key: " + str(ready.api_key).encode() + b"\r\ncontent-length: 9\r\n\r\n{"
        )
        await writer.drain()
        await send_inbox(ready, "so that the request before is being read")
        program.process.send_signal(signal.SIGINT)
        await program.logged("stopping")
        await asyncio.wait_for(_again(program.process.pid), 30)
        code, _, _ = await program.end()
        writer.close()

    assert code == 130
    await gone(server)


async def _again(pid: int) -> None:
    """Signals until one counts as a second: those that come together with the first do not."""
    while is_running(pid):
        os.kill(pid, signal.SIGINT)
        await asyncio.to_thread(is_running, pid)


async def test_a_signal_during_the_start_calls_it_off(used: Path) -> None:
    async with dev(used) as program:
        await program.logged("devserver.started")
        server = postmaster_of(used)
        code, out, err = await program.stop()

    assert (code, out) == (0, "")
    assert "Traceback" not in err
    await gone(server)


async def test_a_directory_with_something_else_is_refused(used: Path) -> None:
    foreign = used.parent / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("mine")
    async with dev(foreign) as program:
        code, _, err = await program.end()

    assert code == 1
    assert "holds something else" in err
    assert "Traceback" not in err
    assert [path.name for path in foreign.iterdir()] == ["letter.txt"]
