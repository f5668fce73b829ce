"""Hints between notifiers that stand for processes, through a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.eventually import eventually
from tocsin.store import notifier as module
from tocsin.store import subscription
from tocsin.store.notifier import PAYLOAD_BYTES_MAX, Notifier, payloads
from tocsin.store.pool import Session, open_session
from tocsin.store.query import Query
from tocsin.store.subscription import EVERYTHING, NOTHING, Heard, Subscription

BOUND_S = 20.0

END_LISTENERS = Query(
    "end_listeners",
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name = 'tocsin notifier' AND datname = current_database()",
)
LISTENERS = Query(
    "listeners",
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE application_name = 'tocsin notifier' AND datname = current_database()",
)
SEND = Query("send", "SELECT pg_notify('tocsin', $1)")


@asynccontextmanager
async def running(url: str, *, listen: bool = True) -> AsyncIterator[Notifier]:
    notifier = Notifier(url, listen=listen)
    await notifier.start()
    try:
        yield notifier
    finally:
        await notifier.stop()


@pytest.fixture
async def pair(empty_database_url: str) -> AsyncIterator[tuple[Notifier, Notifier]]:
    async with running(empty_database_url) as one, running(empty_database_url) as other:
        yield one, other


@pytest.fixture
async def session(empty_database_url: str) -> AsyncIterator[Session]:
    opened = await open_session(empty_database_url, application_name="tests")
    yield opened
    await opened.close()


async def hear_all(listener: Subscription, names: set[str]) -> list[Heard]:
    """Wait until all names were heard; every wake-up on the way."""
    heard: list[Heard] = []
    missing = set(names)
    while missing:
        heard.append(await listener.wait(BOUND_S))
        assert heard[-1], f"{len(missing)} names were not heard"
        missing -= heard[-1].names
    return heard


async def nothing_more(listener: Subscription, sender: Notifier, marker: Subscription) -> Heard:
    """What `listener` heard once a later hint of the sender's has gone through."""
    sender.hint("marker")
    assert (await marker.wait(BOUND_S)).names >= {"marker"}
    return listener.take()


async def test_a_hint_wakes_the_readers_of_another_process(pair) -> None:
    one, other = pair
    with other.subscribe("lane:1") as listener:
        one.hint("lane:1", "lane:2")

        assert await listener.wait(BOUND_S) == Heard(frozenset({"lane:1"}))


async def test_a_reader_in_the_same_process_is_woken_before_anything_is_sent(pair) -> None:
    one, _ = pair
    with one.subscribe("lane:1") as listener:
        one.hint("lane:1")

        assert listener.take() == Heard(frozenset({"lane:1"}))


async def test_a_processs_own_hints_do_not_come_back_to_it(pair) -> None:
    one, other = pair
    with one.subscribe("lane:1") as mine, other.subscribe("marker", "lane:1") as theirs:
        one.hint("lane:1")
        assert mine.take() == Heard(frozenset({"lane:1"}))
        await hear_all(theirs, {"lane:1"})
        with one.subscribe("echo") as marker:
            other.hint("echo")
            assert await marker.wait(BOUND_S)

        assert mine.take() == NOTHING


async def test_a_prefix_hears_every_name_that_starts_with_it(pair) -> None:
    one, other = pair
    with other.subscribe(prefixes=["inbox:", "x"]) as listener, other.subscribe("marker") as marker:
        one.hint("inbox:a:1", "inbox:b:2", "in", "outbox:a", "xyz")
        heard = await hear_all(listener, {"inbox:a:1", "inbox:b:2", "xyz"})

        assert {name for part in heard for name in part.names} == {"inbox:a:1", "inbox:b:2", "xyz"}
        assert await nothing_more(listener, one, marker) == NOTHING


async def test_what_is_hinted_often_is_sent_once(pair, session: Session) -> None:
    one, _ = pair
    heard: list[str] = []
    await session.listen("tocsin", lambda _, payload: heard.append(payload))
    # Both go in the turn that the first one opened.
    for _ in range(1000):
        one.hint("lane:1")
    one.hint("lane:2")

    async def arrived() -> bool:
        await session.value(LISTENERS)
        return any("lane:2" in payload for payload in heard)

    await eventually(arrived)
    hints = [payload for payload in heard if payload.startswith("[")]
    assert sorted(msgspec.json.decode(hints[0])) == ["lane:1", "lane:2"]
    assert len(hints) == 1


ODD = [
    "inbox:ü:✉ 🎉",
    "a'b\"c\\d",
    "line\nbreak\ttab",
    "nul\0inside",
    "[1,2]",
    "?x",
    "",
    " ",
    "%s$1",
]


async def test_a_name_may_hold_any_character(pair) -> None:
    one, other = pair
    with other.subscribe(*ODD) as listener:
        one.hint(*ODD)
        heard = await hear_all(listener, set(ODD))

        assert {name for part in heard for name in part.names} == set(ODD)


async def test_more_names_than_one_notification_holds_all_arrive(pair) -> None:
    one, other = pair
    names = {f"inbox:{'x' * 40}:{number}" for number in range(2000)}
    assert sum(map(len, names)) > 10 * PAYLOAD_BYTES_MAX
    with other.subscribe(prefixes=["inbox:"]) as listener:
        one.hint(*names)

        await hear_all(listener, names)


async def test_a_name_too_long_to_send_is_left_out_and_harms_no_other(pair) -> None:
    one, other = pair
    long = "x" * PAYLOAD_BYTES_MAX
    with one.subscribe(long) as mine, other.subscribe(long, "lane:1") as theirs:
        one.hint(long, "lane:1")

        assert mine.take() == Heard(frozenset({long}))
        assert await theirs.wait(BOUND_S) == Heard(frozenset({"lane:1"}))


async def test_too_many_names_become_everything_for_the_others(pair, monkeypatch) -> None:
    monkeypatch.setattr(module, "PENDING_MAX", 5)
    one, other = pair
    with other.subscribe("lane:99") as listener:
        one.hint(*(f"lane:{number}" for number in range(4)))
        one.hint("a", "b", "c")

        assert await listener.wait(BOUND_S) == EVERYTHING


@pytest.mark.parametrize("payload", ["", "no json", "[]", '{"a": 1}', "[1]"])
async def test_a_payload_that_cannot_be_read_counts_as_everything(
    pair, session: Session, payload: str
) -> None:
    _, other = pair
    with other.subscribe("lane:1") as listener:
        await session.rows(SEND, payload)

        assert await listener.wait(BOUND_S) == EVERYTHING


async def test_another_program_can_hint_in_sql(pair, session: Session) -> None:
    _, other = pair
    with other.subscribe("lane:1") as listener:
        await session.rows(SEND, '["lane:1"]')

        assert await listener.wait(BOUND_S) == Heard(frozenset({"lane:1"}))


async def test_after_a_lost_connection_everyone_looks_at_everything(pair, session: Session) -> None:
    one, other = pair
    with one.subscribe("lane:1") as mine, other.subscribe("lane:1") as theirs:
        assert await session.value(END_LISTENERS) == 2

        assert await mine.wait(BOUND_S) == EVERYTHING
        assert await theirs.wait(BOUND_S) == EVERYTHING
        one.hint("lane:1")
        assert await theirs.wait(BOUND_S) == Heard(frozenset({"lane:1"}))


async def test_a_listener_that_hears_nothing_any_more_is_replaced(
    empty_database_url: str, session: Session, monkeypatch
) -> None:
    monkeypatch.setattr(module, "CHECK_S", 0.01)
    monkeypatch.setattr(module, "CHECK_TIMEOUT_S", 0.2)
    async with running(empty_database_url) as notifier:
        assert notifier._session is not None
        before = notifier._own_pid
        with notifier.subscribe("lane:1") as listener:
            # The connection answers as before and hears nothing: a pooler took LISTEN for itself.
            await notifier._session.script("tests", "UNLISTEN *")

            assert await listener.wait(BOUND_S) == EVERYTHING
            assert notifier._own_pid != before


async def test_it_starts_and_reconnects_when_the_database_is_away(
    empty_database_url: str,
) -> None:
    async with running(empty_database_url.replace("tocsin:", "tocsin:wrong")) as notifier:
        assert not notifier.listening
        with notifier.subscribe("lane:1") as listener:
            notifier.hint("lane:1")
            assert listener.take() == Heard(frozenset({"lane:1"}))
            notifier._url = empty_database_url

            assert await listener.wait(BOUND_S) == EVERYTHING
            assert notifier.listening


async def test_without_listen_hints_stay_in_the_process_and_waits_end_by_time(
    empty_database_url: str, session: Session
) -> None:
    async with running(empty_database_url, listen=False) as notifier:
        with notifier.subscribe("lane:1") as listener:
            assert await session.value(LISTENERS) == 0
            assert not notifier.listening
            notifier.hint("lane:1", "lane:2")
            assert await listener.wait(BOUND_S) == Heard(frozenset({"lane:1"}))

            assert await listener.wait(0.001) == NOTHING


async def test_a_wait_that_timed_out_loses_no_later_hint(pair) -> None:
    one, _ = pair
    with one.subscribe("lane:1") as listener:
        assert not await listener.wait(0.001)
        one.hint("lane:1")

        assert await listener.wait(BOUND_S) == Heard(frozenset({"lane:1"}))


async def test_a_wait_that_is_cancelled_loses_no_hint(pair) -> None:
    one, _ = pair
    with one.subscribe("lane:1") as listener:
        waiting = asyncio.create_task(listener.wait(BOUND_S))
        await asyncio.sleep(0)
        one.hint("lane:1")
        waiting.cancel()
        await asyncio.wait([waiting])

        assert listener.take() == Heard(frozenset({"lane:1"}))


async def test_a_closed_subscription_hears_nothing_and_is_forgotten(pair) -> None:
    one, _ = pair
    listener = one.subscribe("lane:1", "lane:2", prefixes=["in"])
    listener.close()
    one.hint("lane:1", "inbox")

    assert listener.take() == NOTHING
    assert (one._exact, one._prefixed) == ({}, {})


async def test_a_reader_that_never_looks_holds_a_bounded_set(monkeypatch) -> None:
    monkeypatch.setattr(subscription, "NAMES_MAX", 3)
    notifier = Notifier("unused", listen=False)
    with notifier.subscribe(prefixes=["n"]) as listener:
        notifier.hint("n1", "n2", "n3")
        notifier.hint("n4", "n5")

        assert listener.take() == EVERYTHING
        notifier.hint("n6")
        assert listener.take() == Heard(frozenset({"n6"}))


async def test_stopping_sends_what_is_pending_and_ends_the_connection(
    empty_database_url: str, session: Session
) -> None:
    async with running(empty_database_url) as other:
        with other.subscribe("last") as listener:
            async with running(empty_database_url) as one:
                one.hint("last")

            assert await listener.wait(BOUND_S) == Heard(frozenset({"last"}))

    async def gone() -> bool:
        return await session.value(LISTENERS) == 0

    await eventually(gone)


async def test_the_hints_connection_commits_without_waiting_for_the_disk(pair) -> None:
    one, _ = pair
    query = Query("setting", "SELECT current_setting('synchronous_commit')")

    assert one._session is not None
    assert await one._session.value(query) == "off"


@given(st.lists(st.text(max_size=300), max_size=200), st.integers(0, 9000))
def test_payloads_hold_every_name_that_fits_and_never_too_many_bytes(names, width) -> None:
    names = [*names, "é" * width]
    packed = payloads(names)

    assert all(len(payload.encode()) <= PAYLOAD_BYTES_MAX for payload in packed)
    read = [name for payload in packed for name in msgspec.json.decode(payload, type=list[str])]
    fitting = [name for name in names if len(msgspec.json.encode(name)) + 2 <= PAYLOAD_BYTES_MAX]
    assert read == fitting
