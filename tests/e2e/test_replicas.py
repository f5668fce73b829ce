"""`tocsin serve` and `tocsin worker`: any number on one database, started at once."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.support.eventually import eventually
from tests.support.postgres import run_on
from tests.support.program import Program, tocsin
from tocsin.faces.cli.demo.api import Api
from tocsin.faces.cli.ports import ServeReady

MESSAGES = 20


async def started(stack: AsyncExitStack, url: str, *arguments: str) -> Program:
    return await stack.enter_async_context(tocsin(*arguments, DATABASE_URL=url))


async def serving(stack: AsyncExitStack, url: str, *more: str) -> Program:
    return await started(stack, url, "serve", "--json", "--port", "0", *more)


async def new_project(url: str, operator_key: str) -> str:
    """The key of a project that knows one person, Ada."""
    api = Api(url, operator_key)
    try:
        made = await api.post("/v1/admin/projects", id="acme", rate_limit_per_min=None)
    finally:
        await api.aclose()
    key = made["project"]["api_key"]
    api = Api(url, key)
    try:
        await api.post("/v1/subscribers", id="ada")
    finally:
        await api.aclose()
    return key


async def test_replicas_that_start_at_once_on_an_empty_database_migrate_it_once_and_share_the_work(
    empty_database_url: str,
) -> None:
    async with AsyncExitStack() as stack:
        servers = [await serving(stack, empty_database_url) for _ in range(2)]
        workers = [await started(stack, empty_database_url, "worker") for _ in range(2)]
        ready = [await program.ready(ServeReady) for program in servers]
        for program in workers:
            assert (await program.logged("working"))["listens"] is True
        made = [one.operator_key for one in ready if one.operator_key is not None]
        assert len(made) == 1

        key = await new_project(ready[0].url, made[0])
        apis = [Api(one.url, key) for one in ready]
        for number in range(MESSAGES):
            await apis[number % 2].post(
                "/v1/send", channel="in_app", subscriber_id="ada", body=f"message {number}"
            )

        async def all_there() -> bool:
            count = await apis[1].get("/v1/inbox/ada/unread-count")
            return count["unread_count"] == MESSAGES

        await eventually(all_there)
        health = await apis[0].get("/v1/health")
        assert len(health["workers"]) == 2
        for api in apis:
            await api.aclose()
        ended = [await program.stop() for program in (*servers, *workers)]

    assert [code for code, _, _ in ended] == [0] * 4
    assert all('"event":"stopped"' in log and "Traceback" not in log for _, _, log in ended)


async def test_poll_only_processes_deliver_too(empty_database_url: str) -> None:
    async with AsyncExitStack() as stack:
        server = await serving(stack, empty_database_url, "--no-listen")
        ready = await server.ready(ServeReady)
        worker = await started(stack, empty_database_url, "worker", "--no-listen")
        assert (await worker.logged("working"))["listens"] is False
        assert ready.operator_key is not None
        api = Api(ready.url, await new_project(ready.url, ready.operator_key))
        stack.push_async_callback(api.aclose)
        await api.post("/v1/send", channel="in_app", subscriber_id="ada", body="polled")

        async def is_there() -> bool:
            return (await api.get("/v1/inbox/ada/unread-count"))["unread_count"] == 1

        await eventually(is_there)


@pytest.mark.parametrize("command", ["serve", "worker"])
async def test_without_migrating_an_older_database_is_refused(
    empty_database_url: str, command: str
) -> None:
    arguments = (command, "--no-migrate", *(("--port", "0") if command == "serve" else ()))
    async with tocsin(*arguments, DATABASE_URL=empty_database_url) as program:
        code, out, err = await program.end()

    assert (code, out) == (1, "")
    assert err.startswith("error: the database lacks 0001_")
    assert "run `tocsin migrate`" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["serve", "worker"])
async def test_a_database_of_a_newer_version_is_refused(database_url: str, command: str) -> None:
    await run_on(
        database_url,
        "INSERT INTO tocsin.schema_migrations (id, name, sha256, version) "
        "VALUES (9999, 'later', '', '9.9')",
    )
    arguments = (command, *(("--port", "0") if command == "serve" else ()))
    async with tocsin(*arguments, DATABASE_URL=database_url) as program:
        code, _, err = await program.end()

    assert code == 1
    assert "run Tocsin 9.9 or newer" in err
    assert "Traceback" not in err


async def test_a_configured_operator_key_is_used_and_none_is_made(
    empty_database_url: str,
) -> None:
    async with AsyncExitStack() as stack:
        program = await stack.enter_async_context(
            tocsin(
                "serve",
                "--json",
                "--port",
                "0",
                DATABASE_URL=empty_database_url,
                ADMIN_API_KEY="operator-key-of-this-test",
            )
        )
        ready = await program.ready(ServeReady)
        assert ready.operator_key is None
        assert (await new_project(ready.url, "operator-key-of-this-test")).startswith("sk_acme_")


async def test_the_operator_key_is_printed_to_people_once(empty_database_url: str) -> None:
    shown = []
    for _ in range(2):
        async with tocsin("serve", "--port", "0", DATABASE_URL=empty_database_url) as program:
            await program.logged("serving")
            shown.append((await program.stop())[1])

    assert "admin_" in shown[0]
    assert shown[1] == ""


async def test_a_database_that_is_away_is_one_clear_line() -> None:
    async with tocsin("worker", DATABASE_URL="postgresql://u:hidden@127.0.0.1:1/x") as program:
        code, _, err = await program.end()

    assert code == 1
    assert "cannot be reached" in err
    assert err.count("\n") == 1
    assert "hidden" not in err


async def test_two_workers_that_are_stopped_while_one_works_lose_nothing(
    empty_database_url: str,
) -> None:
    async with AsyncExitStack() as stack:
        server = await serving(stack, empty_database_url)
        ready = await server.ready(ServeReady)
        assert ready.operator_key is not None
        api = Api(ready.url, await new_project(ready.url, ready.operator_key))
        stack.push_async_callback(api.aclose)
        people = [f"person-{number}" for number in range(200)]
        for person in people:
            await api.post("/v1/subscribers", id=person)
        first = await started(stack, empty_database_url, "worker")
        await first.logged("working")
        answer = await api.post(
            "/v1/batch", channel="in_app", subscribers=people, body="to everybody"
        )
        assert answer["jobs_created"] == len(people)
        second = await started(stack, empty_database_url, "worker")
        stopping = asyncio.create_task(first.stop())
        await second.logged("working")
        assert (await stopping)[0] == 0

        async def all_there() -> bool:
            counts = [await api.get(f"/v1/inbox/{person}/unread-count") for person in people]
            return all(count["unread_count"] == 1 for count in counts)

        await eventually(all_there)
        async with tocsin(
            "doctor", "--invariants", "--json", DATABASE_URL=empty_database_url
        ) as doctor:
            _, report, _ = await doctor.end()
        assert '"code":"invariants"' in report
