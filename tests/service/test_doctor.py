"""The doctor finds what is wrong with a real database, and goes on looking after it found something."""

import asyncio
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from tests.support.postgres import TestServer, run_on
from tocsin.service.doctor import examine
from tocsin.service.finding import Finding
from tocsin.settings import parse
from tocsin.store import lanes, upkeep, vitals, workers
from tocsin.store.pool import Database

SETTINGS = parse({}, "")
BOUND_S = 20.0


async def findings(url: str, *, invariants: bool = False) -> dict[str, Finding]:
    async with asyncio.timeout(BOUND_S):
        found = [f async for f in examine(SETTINGS, url, invariants=invariants)]
    return {finding.code: finding for finding in found}


def wrong(found: dict[str, Finding]) -> set[str]:
    return {code for code, finding in found.items() if finding.severity != "ok"}


#: Of every test database: no email, no worker, and fsync off.
ALWAYS = {"email_not_configured", "no_worker", "fsync_off", "full_page_writes_off"}


@pytest.fixture
async def ready(db: Database) -> Database:
    await upkeep.ensure_partitions(db, datetime.now(UTC))
    return db


async def test_a_database_that_is_well_has_no_finding_of_its_own(ready: Database) -> None:
    found = await findings(ready.url, invariants=True)

    assert wrong(found) == ALWAYS
    assert {"database", "clock", "listen", "migrations", "partitions", "invariants"} <= found.keys()
    assert all(finding.action for finding in found.values() if finding.severity != "ok")


async def test_a_database_that_cannot_be_reached_is_critical(postgres: TestServer) -> None:
    found = await findings("postgresql://nobody:x@127.0.0.1:1/none")

    assert found["database_unreachable"].severity == "critical"
    assert found["database_unreachable"].action


async def test_a_database_that_was_never_migrated_says_so_and_nothing_else_of_the_queue(
    empty_database_url: str,
) -> None:
    found = await findings(empty_database_url, invariants=True)

    assert found["migrations_pending"].severity == "critical"
    assert "invariants" not in found


async def test_a_database_of_a_newer_version_is_critical(ready: Database) -> None:
    await run_on(
        ready.url,
        "INSERT INTO tocsin.schema_migrations (id, name, sha256, version) "
        "VALUES (9999, 'later', '', '9.9')",
    )

    found = await findings(ready.url)

    assert found["database_newer"].severity == "critical"
    assert "9.9" in found["database_newer"].action


async def test_missing_partitions_of_today_are_critical(db: Database) -> None:
    await run_on(
        db.url,
        "DO $$ DECLARE t text; BEGIN FOR t IN SELECT inhrelid::regclass FROM pg_inherits "
        "WHERE inhparent = 'tocsin.jobs'::regclass LOOP EXECUTE 'DROP TABLE ' || t; END LOOP; END $$",
    )

    assert (await findings(db.url))["partitions_missing"].severity == "critical"


async def test_a_lane_that_rests_and_one_that_nobody_serves_are_told_apart(
    ready: Database,
) -> None:
    now = datetime.now(UTC)
    resting, alone = [
        await lanes.ensure_lane(ready, channel=channel, provider="x", account="default", now=now)
        for channel in ("sms", "push")
    ]
    await lanes.pause_lane(
        ready, lane=resting, until=now + timedelta(hours=1), code="throttled", reason="asked for it"
    )
    await run_on(
        ready.url,
        f"INSERT INTO tocsin.ready VALUES ({alone}, 2, 1, gen_random_uuid(), 0, 0)",
    )

    found = await findings(ready.url)

    assert "sms (x) rests" in found["lane_paused"].message
    assert "asked for it" in found["lane_paused"].message
    assert "1 due jobs wait in push (x)" in found["lane_without_worker"].message


async def test_a_worker_is_alive_while_it_beats(ready: Database) -> None:
    now = datetime.now(UTC)
    lane = await lanes.ensure_lane(
        ready, channel="email", provider="log", account="default", now=now
    )
    await workers.beat(
        ready, worker=UUID(int=1), host="here", version="0.1.0", lanes=[lane], now=now
    )

    found = await findings(ready.url)

    assert "no_worker" not in found
    assert "serves email (log)" in found["worker"].message


async def test_a_database_that_only_reads_is_critical(ready: Database) -> None:
    name = urlsplit(ready.url).path.lstrip("/")
    await run_on(ready.url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")

    found = await findings(ready.url)

    assert found["database_read_only"].severity == "critical"
    assert "default_transaction_read_only" in found["database_read_only"].message


async def test_a_running_worker_says_which_provider_serves_email(ready: Database) -> None:
    now = datetime.now(UTC)
    lane = await lanes.ensure_lane(
        ready, channel="email", provider="smtp", account="default", now=now
    )
    await workers.beat(
        ready, worker=UUID(int=1), host="here", version="0.1.0", lanes=[lane], now=now
    )

    found = await findings(ready.url)

    assert "email_not_configured" not in found
    assert "deliver email through smtp" in found["email_settings_differ"].message


async def test_a_transaction_that_holds_old_rows_is_found_and_an_idle_session_is_not(
    ready: Database,
) -> None:
    # In the doctor's eyes; thirty seconds need not pass for that.
    later = datetime.now(UTC) + timedelta(minutes=1)
    async with ready.general.session(), ready.transaction("repeatable_read") as tx:
        await vitals.server(tx)
        held = await vitals.holders(ready.queue, now=later, older_than=timedelta(seconds=30))

    assert [(holder.kind, holder.name) for holder in held] == [("transaction", "tests")]
    assert await vitals.holders(ready, now=later, older_than=timedelta(seconds=30)) == []


async def test_planted_damage_is_found_when_invariants_are_asked_for(ready: Database) -> None:
    await run_on(
        ready.url,
        "SET search_path TO tocsin; INSERT INTO ready VALUES (1, 2, 1, gen_random_uuid(), 0, 0)",
    )

    assert "invariant_place_without_job" not in await findings(ready.url)
    found = await findings(ready.url, invariants=True)
    assert found["invariant_place_without_job"].severity == "critical"
