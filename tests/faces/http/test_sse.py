"""The live inbox over a real socket: no gap, no double, bounded, ended in time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest

from tests.faces.http.conftest import Api, Served
from tests.support.wire_client import Exchange, exchange
from tocsin.domain.ids import uuid7
from tocsin.faces.http import streams
from tocsin.store import inbox
from tocsin.store.inbox import NewMessage
from tocsin.store.pool import Query


def message(api: Api, person: str = "ada", **fields: Any) -> NewMessage:
    new = {"body": "hello", "icon": "bell"} | fields
    return NewMessage(uuid7(api.clock.now()), api.who.number, person, **new)


@asynccontextmanager
async def stream(
    api: Api, served: Served, person: str = "ada", query: str = "", **headers: str
) -> AsyncIterator[Exchange]:
    async with exchange(served.port) as opened:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if "authorization" not in given and not query.startswith(("?t", "?nothing")):
            given["x-api-key"] = api.key
        await opened.request("GET", f"/v1/inbox/{quote(person, safe='')}/stream{query}", given)
        yield opened


async def test_a_new_stream_starts_with_the_count_and_then_tells_what_comes(
    api: Api, served: Served
) -> None:
    await api.deliver(message(api))
    async with stream(api, served) as opened:
        assert opened.status == 200
        assert opened.headers["content-type"].startswith("text/event-stream")
        assert opened.headers["cache-control"] == "no-store"
        first = await opened.next()
        new = message(api, subject="Hi", url="https://x.example/", data='{"a":\n1}')
        await api.deliver(new)
        second, third = await opened.next(), await opened.next()

    assert first.id == "1"
    assert first.data == {"type": "count_update", "unread_count": 1, "version": 1}
    assert second.id == "2"
    assert second.data["type"] == "new_notification"
    notification = second.data["notification"]
    assert notification == {
        "id": str(new.job_id), "body": "hello", "icon": "bell", "url": "https://x.example/",
        "created_at": "2026-03-02T12:00:00Z", "is_read": False, "is_todo": False,
        "subject": "Hi", "data": {"a": 1},
    }  # fmt: skip
    assert third.data == {"type": "count_update", "unread_count": 2, "version": 2}


async def test_every_way_to_mark_a_message_is_told(api: Api, served: Served) -> None:
    new, other = message(api), message(api)
    await api.deliver(new, other)
    path = f"/v1/inbox/ada/{new.job_id}"
    async with stream(api, served) as opened:
        await opened.next()
        told = []
        for patch in ({"read": True}, {"is_todo": True}, {"archived": True}, {"archived": False}):
            await api.acme.patch(path, patch)
            told.append((await opened.next()).data)
            told.append((await opened.next()).data)
        await api.acme.post("/v1/inbox/ada/read-all")
        told.append((await opened.next()).data)
        told.append((await opened.next()).data)

    assert [(t["type"], t["unread_count"]) for t in told] == [
        ("read", 1), ("count_update", 1), ("todo", 1), ("count_update", 1),
        ("archived", 1), ("count_update", 1), ("unarchived", 1), ("count_update", 1),
        ("read_all", 0), ("count_update", 0),
    ]  # fmt: skip
    assert told[0]["id"] == str(new.job_id)
    assert told[2]["is_todo"] is True


async def test_a_reconnect_goes_on_where_it_left_without_gap_or_double(
    api: Api, served: Served
) -> None:
    async with stream(api, served) as opened:
        await opened.next()
        await api.deliver(message(api, body="1"))
        last = (await opened.next()).id
    assert last == "1"
    for number in range(2, 6):
        await api.deliver(message(api, body=str(number)))

    async with stream(api, served, last_event_id=last) as again:
        bodies, versions = [], []
        while len(bodies) < 5:
            event = await again.next()
            if event.data["type"] == "new_notification":
                bodies.append(event.data["notification"]["body"])
                versions.append(event.id)
            if len(bodies) == 4 and event.data["type"] == "count_update":
                await api.deliver(message(api, body="6"))

    assert bodies == ["2", "3", "4", "5", "6"]
    assert versions == ["2", "3", "4", "5", "6"]


async def test_a_reconnect_that_missed_nothing_is_told_the_count(api: Api, served: Served) -> None:
    await api.deliver(message(api))
    async with stream(api, served, query="?last_event_id=1") as opened:
        first = await opened.next()

    assert first.data == {"type": "count_update", "unread_count": 1, "version": 1}


@pytest.mark.parametrize("after", ["99", "999999999999999999"])
async def test_an_id_from_the_future_is_a_reset(api: Api, served: Served, after: str) -> None:
    await api.deliver(message(api))
    async with stream(api, served, last_event_id=after) as opened:
        first, second = await opened.next(), await opened.next()
        await api.deliver(message(api))
        third = await opened.next()

    assert (first.id, first.data) == ("1", {"type": "reset", "version": 1})
    assert second.data["type"] == "count_update"
    assert third.data["type"] == "new_notification"


DROP_CHANGES = Query("test_drop_changes", "DELETE FROM inbox_changes WHERE version <= $1")


async def test_an_id_whose_changes_are_gone_is_a_reset(api: Api, served: Served) -> None:
    await api.deliver(*(message(api) for _ in range(4)))
    await api.app.db.execute(DROP_CHANGES, 3)
    async with (
        stream(api, served, last_event_id="1") as old,
        stream(api, served, last_event_id="3") as recent,
    ):
        first, other = await old.next(), await recent.next()

    assert first.data == {"type": "reset", "version": 4}
    assert other.data["type"] == "new_notification"


async def test_changes_that_vanish_under_a_live_stream_are_a_reset(
    api: Api, served: Served
) -> None:
    async with stream(api, served) as opened:
        await opened.next()
        async with api.app.db.transaction() as tx:
            await inbox.insert_messages(tx, [message(api)], api.clock.now())
            await tx.execute(DROP_CHANGES, 1)
        first, second = await opened.next(), await opened.next()

    assert (first.id, first.data) == ("1", {"type": "reset", "version": 1})
    assert second.data == {"type": "count_update", "unread_count": 1, "version": 1}


async def test_an_inbox_that_was_deleted_and_made_anew_is_a_reset(api: Api, served: Served) -> None:
    await api.acme.post("/v1/subscribers", {"id": "ada"})
    await api.deliver(message(api), message(api))
    async with stream(api, served) as opened:
        await opened.next()
        await api.acme.delete("/v1/subscribers/ada")
        first = await opened.next()

    assert first.data == {"type": "reset", "version": 0}


@pytest.mark.parametrize("after", ["-1", "x", "1" * 19, "٣"])
async def test_an_id_that_is_no_version_is_a_400(api: Api, served: Served, after: str) -> None:
    async with stream(api, served, query=f"?last_event_id={quote(after)}") as opened:
        assert opened.status == 400


async def test_a_lost_hint_costs_a_sweep_and_nothing_else(
    api: Api, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stream(api, served) as opened:
        await opened.next()
        monkeypatch.setattr(api.app.notifier.__class__, "hint", lambda *_: None)
        await api.deliver(message(api))

        assert (await opened.next()).data["type"] == "new_notification"


async def test_streams_of_one_inbox_all_hear_and_others_do_not(api: Api, served: Served) -> None:
    async with (
        stream(api, served) as one,
        stream(api, served) as two,
        stream(api, served, "bob") as bob,
        stream(api, served, "ada:1") as colon,
    ):
        for opened in (one, two, bob, colon):
            assert (await opened.next()).data["unread_count"] == 0
        await api.deliver(message(api), message(api, "ada:1", body="colon"))

        assert (await one.next()).data["notification"]["body"] == "hello"
        assert (await two.next()).data["notification"]["body"] == "hello"
        assert (await colon.next()).data["notification"]["body"] == "colon"
        await api.deliver(message(api, "bob", body="bob"))
        assert (await bob.next()).data["notification"]["body"] == "bob"


async def test_projects_never_hear_each_other(api: Api, served: Served) -> None:
    other = await api.project("other")
    token = await other.post("/v1/auth/subscriber-token", {"subscriber_id": "ada"})
    async with (
        stream(api, served) as ours,
        stream(api, served, authorization=f"Bearer {token.json['token']}") as theirs,
    ):
        await ours.next()
        assert (await theirs.next()).data["version"] == 0
        await api.deliver(message(api))
        await ours.next()

    async with stream(api, served, query=f"?token={token.json['token']}") as again:
        assert (await again.next()).data["version"] == 0


async def test_an_idle_stream_is_kept_alive_by_comments(api: Api, served: Served) -> None:
    async with stream(api, served) as opened:
        events = opened.events()
        first = await anext(events)
        seen = [event async for event in _until_comment(events)]

    assert first.retry == "2000"
    assert seen[-1].comment == "ping"


async def _until_comment(events: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for event in events:
        yield event
        if event.comment:
            return


async def test_a_ticket_opens_one_stream_once_and_only_of_its_subscriber(
    api: Api, served: Served
) -> None:
    drawn = (await api.acme.post("/v1/inbox/ada/stream-ticket")).json
    wrong = (await api.acme.post("/v1/inbox/ada/stream-ticket")).json["ticket"]
    assert drawn["expires_in_seconds"] == 60

    async with stream(api, served, query=f"?ticket={drawn['ticket']}") as opened:
        assert (await opened.next()).data["type"] == "count_update"
    async with stream(api, served, query=f"?token={drawn['ticket']}") as again:
        assert again.status == 401
    async with stream(api, served, "bob", query=f"?token={wrong}") as mismatched:
        assert mismatched.status == 403


async def test_a_ticket_is_worth_nothing_after_a_minute(api: Api, served: Served) -> None:
    drawn = (await api.acme.post("/v1/inbox/ada/stream-ticket")).json["ticket"]
    api.clock.advance(seconds=60)

    async with stream(api, served, query=f"?ticket={drawn}") as opened:
        assert opened.status == 401


async def test_a_stream_ends_with_the_token_that_opened_it(api: Api, served: Served) -> None:
    token = await api.token("ada", ttl_secs=60)
    api.clock.advance(seconds=59.9)
    async with stream(api, served, query=f"?token={token}") as opened:
        events = [event.data async for event in opened.events() if event.data]

    assert events[0]["type"] == "count_update"
    assert events[-1] == {"type": "token_expired"}


async def test_a_ticket_does_not_outlive_the_token_it_was_drawn_with(
    api: Api, served: Served
) -> None:
    token = await api.token("ada", ttl_secs=60)
    bearer = api.nobody.with_headers(authorization=f"Bearer {token}")
    drawn = (await bearer.post("/v1/inbox/ada/stream-ticket")).json["ticket"]
    api.clock.advance(seconds=59.9)
    async with stream(api, served, query=f"?ticket={drawn}") as opened:
        events = [event.data async for event in opened.events() if event.data]

    assert events[-1] == {"type": "token_expired"}


async def test_a_token_of_another_subscriber_or_none_opens_nothing(
    api: Api, served: Served
) -> None:
    token = await api.token("bob")
    async with stream(api, served, query=f"?token={token}") as opened:
        assert opened.status == 403
    async with stream(api, served, query="?token=a.b.c") as opened:
        assert opened.status == 401
    async with stream(api, served, query="?nothing") as opened:
        assert opened.status == 401
    async with stream(api, served, query=f"?token={api.key}") as opened:
        assert opened.status == 401


async def test_the_streams_of_a_deleted_project_end(api: Api, served: Served) -> None:
    async with stream(api, served) as opened:
        await opened.next()
        await api.admin.delete("/v1/admin/projects/acme")

        assert [e.data async for e in opened.events() if e.data] == [{"type": "token_expired"}]


async def test_an_inbox_has_a_bounded_number_of_streams(
    api: Api, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STREAMS_PER_INBOX_MAX", 1)
    async with stream(api, served) as one, stream(api, served) as two:
        assert (one.status, two.status) == (200, 429)
        async with stream(api, served, "bob") as bob:
            assert bob.status == 200


async def test_a_process_has_a_bounded_number_of_streams(
    api: Api, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STREAMS_MAX", 1)
    async with stream(api, served) as one, stream(api, served, "bob") as two:
        assert (one.status, two.status) == (200, 503)
        assert two.headers["retry-after"]


async def test_a_stream_that_was_left_makes_room(
    api: Api, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STREAMS_MAX", 1)
    async with stream(api, served) as one:
        await one.next()
    async with asyncio.timeout(10):
        status = 0
        while status != 200:
            async with stream(api, served) as two:
                status = two.status

    assert status == 200


async def test_stopping_ends_open_streams_at_once(api: Api, served: Served) -> None:
    async with stream(api, served) as opened:
        await opened.next()
        served.stop.set()

        assert [event async for event in opened.events() if event.data] == []
        async with asyncio.timeout(4):
            await served.done


@pytest.mark.parametrize("person", ["a\0b", "x" * 257])
async def test_a_stream_of_an_id_that_cannot_be_is_refused_and_spoils_no_other(
    api: Api, served: Served, person: str
) -> None:
    async with stream(api, served) as ada, stream(api, served, person) as opened:
        assert opened.status == 404
        await ada.next()
        await api.deliver(message(api))
        assert (await ada.next()).data["type"] == "new_notification"


async def test_an_id_with_slashes_and_other_letters_has_its_stream(
    api: Api, served: Served
) -> None:
    async with stream(api, served, "a/b é:%") as opened:
        await opened.next()
        await api.deliver(message(api, "a/b é:%", body="slashed"))

        assert (await opened.next()).data["notification"]["body"] == "slashed"


async def test_a_path_that_only_looks_like_a_stream_is_none(api: Api, served: Served) -> None:
    async with exchange(served.port) as opened:
        await opened.request("GET", "/v1/inbox/a/b/stream", {"x-api-key": api.key})

        assert opened.status == 404
