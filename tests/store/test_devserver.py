"""The private PostgreSQL: started, stopped, killed and found again."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.postgres import in_thread
from tocsin.domain.errors import Conflict, Unavailable
from tocsin.store import devserver as module
from tocsin.store import devserver_data
from tocsin.store.devserver import DevServer
from tocsin.store.devserver_running import running
from tocsin.store.pool import open_session
from tocsin.store.query import Query

BOUND_S = 60.0
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "support" / "killed_parent.py"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as somebody else")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def used(folder: Path) -> Path:
    """A data directory in which a server has run once."""
    with DevServer(folder / "used", durable=False) as server:
        ask(server.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    return folder / "used"


def ask(url: str, text: str) -> object:
    async def asked() -> object:
        session = await open_session(url, application_name="tests")
        try:
            return await session.value(Query("tests", text))
        finally:
            await session.close()

    return in_thread(asked())


def until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(BOUND_S / 0.01)):
        if is_so():
            return
        pause.wait(0.01)
    raise TimeoutError


def is_running(pid: int) -> bool:
    try:
        # A zombie has ended; whoever adopts it has not looked yet.
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def start_program(data: Path, *more: str) -> tuple[subprocess.Popen[str], int]:
    program = subprocess.Popen(
        [sys.executable, PROGRAM, data, *more],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert program.stdout is not None
    for line in program.stdout:
        if line.startswith("running "):
            return program, int(line.split()[1])
    kill(program)
    raise AssertionError("the program ended before its server ran")


def kill(program: subprocess.Popen[str]) -> None:
    program.kill()
    program.wait(BOUND_S)
    assert program.stdout is not None
    program.stdout.close()


def test_a_server_answers_on_its_socket_and_on_loopback(used: Path) -> None:
    with DevServer(used, durable=False) as server:
        for url in (server.url, server.tcp_url):
            assert ask(url, "SELECT current_user || current_database()") == "tocsintocsin"
        number = int(str(ask(server.url, "SELECT current_setting('server_version_num')")))
        assert server.version == (number // 10_000, number % 10_000)
        assert ask(server.url, "SELECT current_setting('listen_addresses')") == "127.0.0.1"


def test_it_asks_for_its_password_everywhere(used: Path) -> None:
    with DevServer(used, durable=False) as server:
        password = server.tcp_url.split(":")[2].split("@")[0]
        for url in (server.url, server.tcp_url):
            with pytest.raises(Unavailable) as caught:
                ask(url.replace(password, "wrong"), "SELECT 1")
            assert caught.value.code == "database_refused"
        secret = server.data_dir / "password"
        assert secret.read_text() == password
        assert secret.stat().st_mode & 0o077 == 0


def test_a_second_start_finds_the_data_the_password_and_the_port(used: Path) -> None:
    with DevServer(used, durable=False) as first:
        url = first.tcp_url
        assert first.data_dir == used
    with DevServer(used, durable=False) as second:
        assert ask(second.url, "SELECT answer FROM kept") == 42
        assert second.tcp_url == url


def test_a_port_that_was_taken_meanwhile_is_replaced(used: Path) -> None:
    with DevServer(used, durable=False) as first:
        port = first.port
    with socket.create_server(("127.0.0.1", port)), DevServer(used, durable=False) as second:
        assert second.port != port
        assert ask(second.tcp_url, "SELECT 1") == 1


@on_linux
def test_stopping_leaves_no_process_even_with_clients_connected(used: Path) -> None:
    server = DevServer(used, durable=False)
    server.start()
    pid = server.pid

    async def stop_while_connected() -> None:
        session = await open_session(server.url, application_name="tests")
        server.stop()
        await session.close()

    in_thread(stop_while_connected())
    assert not is_running(pid)
    assert not (used / "postgres" / "postmaster.pid").exists()
    server.stop()


async def test_it_starts_inside_a_running_loop(used: Path) -> None:
    async with DevServer(used, durable=False) as server:
        session = await open_session(server.url, application_name="tests")
        assert await session.value(Query("tests", "SELECT answer FROM kept")) == 42
        await session.close()


def test_two_at_once_take_two_directories(used: Path) -> None:
    with DevServer(used, durable=False) as first, DevServer(used, durable=False) as second:
        assert (first.data_dir, second.data_dir) == (used, used.with_name("used-2"))
        assert first.why_elsewhere == ""
        assert second.why_elsewhere == f"{used} is in use by another `tocsin dev`"
        assert [found.data_dir for found in running(used)] == [used, second.data_dir]
        assert [ask(found.url, "SELECT 1") for found in running(used)] == [1, 1]
        assert ask(first.url, "SELECT answer FROM kept") == 42
        assert ask(second.url, "SELECT to_regclass('kept') IS NULL") is True


def test_there_is_an_end_to_directories_beside_each_other(used: Path, monkeypatch) -> None:
    monkeypatch.setattr(devserver_data, "DIRECTORIES_MAX", 1)
    with DevServer(used, durable=False):
        with pytest.raises(Conflict) as caught:
            DevServer(used, durable=False).start()
        assert caught.value.code == "data_directories_in_use"


@on_linux
def test_a_killed_parent_takes_its_server_down(used: Path) -> None:
    program, pid = start_program(used)
    assert is_running(pid)
    kill(program)
    until(lambda: not is_running(pid))

    with DevServer(used, durable=False) as server:
        assert server.data_dir == used
        assert ask(server.url, "SELECT answer FROM kept") == 42


@on_linux
def test_a_server_that_outlived_its_parent_is_ended_by_the_next_start(used: Path) -> None:
    program, pid = start_program(used, "orphaning")
    kill(program)
    assert is_running(pid)

    with DevServer(used, durable=False) as server:
        assert not is_running(pid)
        assert ask(server.url, "SELECT answer FROM kept") == 42


def test_after_a_killed_server_the_next_start_recovers(used: Path) -> None:
    with DevServer(used, durable=False) as server:
        ask(server.url, "CHECKPOINT")
        os.kill(server.pid, signal.SIGKILL)
    with DevServer(used, durable=False) as server:
        assert ask(server.url, "SELECT answer FROM kept") == 42


def test_a_directory_that_cannot_be_made_is_told_without_a_traceback(folder: Path) -> None:
    (folder / "file").write_text("mine")
    with pytest.raises(Conflict) as caught:
        DevServer(folder / "file" / "data").start()

    assert caught.value.code == "data_directory_unusable"
    assert str(folder / "file") in caught.value.detail
    assert "--data" in caught.value.remedy


def test_a_pid_file_whose_number_went_to_another_program_is_no_obstacle(used: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    pid_file = used / "postgres" / "postmaster.pid"
    pid_file.write_text(f"{stranger.pid}\n{used / 'postgres'}\n")
    with DevServer(used, durable=False) as server:
        assert ask(server.url, "SELECT answer FROM kept") == 42

    assert stranger.poll() is None
    stranger.communicate(b"\n", timeout=BOUND_S)


@on_linux
def test_an_end_in_the_middle_of_making_the_cluster_is_made_good(folder: Path) -> None:
    data = folder / "cut"
    program = subprocess.Popen(
        [sys.executable, PROGRAM, data],
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    until(lambda: any(data.glob(".making-*/base")))
    program.kill()
    program.wait(BOUND_S)
    assert not (data / "postgres").exists()

    with DevServer(data, durable=False) as server:
        assert ask(server.url, "SELECT 1") == 1
        assert server.data_dir == data
        assert list(data.glob(".making-*")) == []


def test_a_directory_with_other_things_in_it_is_left_alone(folder: Path) -> None:
    other = folder / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(Conflict) as caught:
        DevServer(other).start()

    assert caught.value.code == "data_directory_foreign"
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


def test_data_of_another_version_names_both_versions(used: Path) -> None:
    stated = used / "postgres" / "PG_VERSION"
    ours = stated.read_text()
    stated.write_text("12\n")
    try:
        with pytest.raises(Conflict) as caught:
            DevServer(used).start()
    finally:
        stated.write_text(ours)

    assert caught.value.code == "data_directory_other_version"
    assert "PostgreSQL 12;" in caught.value.detail
    assert f"PostgreSQL {ours.strip()}" in caught.value.detail


def test_a_cluster_without_a_version_is_not_touched(folder: Path) -> None:
    data = folder / "broken"
    (data / "postgres").mkdir(parents=True)
    (data / "tocsin.lock").touch()
    with pytest.raises(Conflict) as caught:
        DevServer(data).start()

    assert caught.value.code == "data_directory_broken"


def test_a_lost_password_is_replaced_by_a_new_one(used: Path) -> None:
    with DevServer(used, durable=False) as server:
        before = server.tcp_url
    (used / "password").unlink()
    with DevServer(used, durable=False) as server:
        assert server.tcp_url != before
        assert ask(server.tcp_url, "SELECT answer FROM kept") == 42


def test_a_path_too_long_for_a_socket_is_no_obstacle(folder: Path) -> None:
    data = folder / ("long" * 30)
    for _ in range(2):
        with DevServer(data, durable=False) as server:
            assert server.data_dir == data
            assert ask(server.url, "SELECT 1") == 1
            assert ask(server.url, "SELECT inet_server_addr() IS NULL") is True
            sockets = Path(
                str(ask(server.url, "SELECT current_setting('unix_socket_directories')"))
            )
            assert sockets.stat().st_mode & 0o077 == 0
        assert not sockets.exists()


def test_a_server_that_does_not_start_shows_its_own_words(used: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "START_PAUSE_S", 0.0)
    with pytest.raises(Unavailable) as caught:
        DevServer(used, settings={"work_mem": "plenty"}).start()

    assert caught.value.code == "postgres_not_started"
    assert 'invalid value for parameter "work_mem": "plenty"' in caught.value.detail
    with DevServer(used, durable=False) as server:
        assert ask(server.url, "SELECT 1") == 1


def test_data_is_safe_unless_a_test_says_otherwise(used: Path) -> None:
    with DevServer(used) as server:
        settings = "current_setting('fsync') || current_setting('full_page_writes')"
        assert ask(server.url, f"SELECT {settings}") == "onon"
    with DevServer(used, durable=False) as server:
        assert ask(server.url, f"SELECT {settings}") == "offoff"


@on_linux
def test_the_server_is_apart_from_us_in_group_account_and_environment(
    used: Path, monkeypatch
) -> None:
    monkeypatch.setenv("ADMIN_API_KEY", "hidden")
    with DevServer(used, durable=False) as server:
        process = Path(f"/proc/{server.pid}")
        # Ctrl-C in our terminal does not reach it.
        assert os.getpgid(server.pid) != os.getpgid(0)
        assert process.stat().st_uid != 0
        assert b"hidden" not in (process / "environ").read_bytes()


def test_its_log_quotes_no_rows(used: Path) -> None:
    with DevServer(used, durable=False) as server:
        ask(server.url, "CREATE TABLE IF NOT EXISTS one (name text PRIMARY KEY)")
        insert = "INSERT INTO one SELECT md5('1') || md5('2')"
        ask(server.url, insert)
        with pytest.raises(Exception, match="23505"):
            ask(server.url, insert)
        log = (server.data_dir / "postgres.log").read_text()

    assert "duplicate key" in log
    assert "c4ca4238a0b923820dcc509a6f75849b" not in log


@as_root
def test_data_goes_where_the_account_can_reach_it(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(devserver_data, "SHARED_ROOT", folder / "shared-data")
    closed = folder / "home"
    closed.mkdir(mode=0o700)
    with DevServer(closed / "data", durable=False) as server:
        assert server.data_dir.parent == folder / "shared-data"
        assert f"cannot enter {closed / 'data'}" in server.why_elsewhere
        place = server.data_dir
        ask(server.url, "CREATE TABLE kept AS SELECT 7 AS answer")
    with DevServer(closed / "data", durable=False) as server:
        assert server.data_dir == place
        assert ask(server.url, "SELECT answer FROM kept") == 7
    assert list(closed.iterdir()) == []
