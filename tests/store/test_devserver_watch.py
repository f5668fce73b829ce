"""The private PostgreSQL started again: where it was, as often as is sensible, and not when it was stopped."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
import structlog

from tests.support.eventually import eventually
from tests.support.postgres import run_on
from tests.support.program import gone
from tocsin.domain.errors import Unavailable
from tocsin.store import devserver_watch as watch
from tocsin.store.devserver import DevServer
from tocsin.store.pool import open_session
from tocsin.store.query import Query

KEPT = Query("kept", "SELECT answer FROM kept")


@pytest.fixture(scope="module")
def used(folder: Path) -> Path:
    """A data directory for all tests here."""
    return folder / "watched"


async def has_ended(server: DevServer) -> bool:
    return await asyncio.to_thread(lambda: server.has_ended)


async def test_a_server_that_ended_is_started_again_where_it_was(used: Path) -> None:
    async with DevServer(used, durable=False) as server:
        url, pid = server.url, server.pid
        assert not server.has_ended
        await run_on(url, "CREATE TABLE kept AS SELECT 42 AS answer")
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: has_ended(server))

        await server.restart()

        assert (server.url, server.pid == pid, server.has_ended) == (url, False, False)
        session = await open_session(url, application_name="tests")
        assert await session.value(KEPT) == 42
        await session.close()


async def test_a_server_that_is_watched_comes_back_and_not_for_ever(
    used: Path, monkeypatch
) -> None:
    monkeypatch.setattr(watch, "RESTARTS_MAX", 2)
    monkeypatch.setattr(watch, "LOOK_S", 0.01)
    lost, killed = asyncio.Event(), []

    async def watched(server: DevServer, lines: list) -> None:
        async def is_over() -> bool:
            """It was started again, or given up."""
            events = await asyncio.to_thread(lambda: [line["event"] for line in lines])
            return lost.is_set() or events.count("devserver.restarted") == len(killed)

        async with watch.kept_running(server, lost.set):
            for _ in range(3):
                assert not lost.is_set()
                killed.append(server.pid)
                os.kill(server.pid, signal.SIGKILL)
                await eventually(is_over)

    with structlog.testing.capture_logs() as lines:
        async with DevServer(used, durable=False) as server:
            with pytest.raises(Unavailable) as caught:
                await watched(server, lines)

    assert len(set(killed)) == 3
    assert caught.value.code == "postgres_keeps_ending"
    assert str(used / "postgres.log") in caught.value.detail


async def test_a_watched_server_that_is_stopped_stays_so(used: Path) -> None:
    lost = asyncio.Event()
    async with DevServer(used, durable=False) as server, watch.kept_running(server, lost.set):
        pid = server.pid

    assert not lost.is_set()
    await gone(pid)
    assert server.pid == 0
