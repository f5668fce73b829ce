"""The inbox over the API: list, mark, count."""

from typing import Any

import pytest

from tests.faces.http.conftest import Api
from tocsin.domain.ids import uuid7
from tocsin.store.inbox import NewMessage


async def deliver(api: Api, body: str, **fields: Any) -> str:
    new = {"icon": "bell", "body": body} | fields
    message = NewMessage(uuid7(api.clock.now()), api.who.number, "ada", **new)
    await api.deliver(message)
    api.clock.advance(seconds=1)
    return str(message.job_id)


async def listed(api: Api, query: str = "") -> Any:
    return (await api.acme.get(f"/v1/inbox/ada{query}")).json


async def test_an_empty_inbox_needs_no_subscriber(api: Api) -> None:
    assert await listed(api) == {
        "items": [], "total": 0, "limit": 20, "offset": 0, "unread_count": 0, "version": 0,
    }  # fmt: skip
    assert (await api.acme.get("/v1/inbox/ada/unread-count")).json["unread_count"] == 0
    assert (await api.acme.post("/v1/inbox/ada/read-all")).json == {"success": True, "updated": 0}


async def test_a_message_reads_as_it_was_delivered(api: Api) -> None:
    message_id = await deliver(api, "hello", subject="Hi", url="/x", data='{"a": [1]}')

    assert (await listed(api))["items"] == [
        {
            "id": message_id, "subject": "Hi", "body": "hello", "icon": "bell", "url": "/x",
            "data": {"a": [1]}, "is_read": False, "read_at": None, "is_todo": False,
            "created_at": "2026-03-02T12:00:00Z",
        }
    ]  # fmt: skip


async def test_the_newest_comes_first_and_filters_apply_before_the_limit(api: Api) -> None:
    ids = [await deliver(api, f"n{number} 50%") for number in range(5)]
    await api.acme.patch(f"/v1/inbox/ada/{ids[4]}", {"read": True, "is_todo": True})
    await api.acme.patch(f"/v1/inbox/ada/{ids[3]}", {"read": True})

    everything = await listed(api, "?limit=2")
    unread = await listed(api, "?limit=2&filter=unread")
    todo = await listed(api, "?filter=todo")
    found = await listed(api, "?q=N3%2050%25")
    none = await listed(api, "?q=%25%25")

    assert [i["id"] for i in everything["items"]] == [ids[4], ids[3]]
    assert everything["total"] == 5
    assert [i["id"] for i in unread["items"]] == [ids[2], ids[1]]
    assert (unread["total"], unread["unread_count"]) == (3, 3)
    assert [i["id"] for i in todo["items"]] == [ids[4]]
    assert [i["id"] for i in found["items"]] == [ids[3]]
    assert none["total"] == 0


async def test_marking_is_exact_and_repeatable(api: Api) -> None:
    first, second = await deliver(api, "1"), await deliver(api, "2")
    path = f"/v1/inbox/ada/{first}"
    counts = []
    for patch in (
        {"read": True}, {"read": True}, {"read": False}, {"archived": True}, {"archived": True},
        {"read": True}, {"archived": False}, {"read": False}, {},
    ):  # fmt: skip
        answered = await api.acme.patch(path, patch)
        assert answered.json == {"success": True}
        counts.append((await api.acme.get("/v1/inbox/ada/unread-count")).json["unread_count"])

    assert counts == [1, 1, 2, 1, 1, 1, 1, 2, 2]
    assert [i["id"] for i in (await listed(api))["items"]] == [second, first]


async def test_an_archived_message_is_not_listed(api: Api) -> None:
    message_id = await deliver(api, "1")
    await api.acme.patch(f"/v1/inbox/ada/{message_id}", {"archived": True})

    assert (await listed(api))["total"] == 0


async def test_an_unknown_message_is_a_404_and_so_is_anothers(api: Api) -> None:
    message_id = await deliver(api, "1")
    paths = ("ada/00000000-0000-7000-8000-000000000000", "ada/nothing", f"bob/{message_id}")
    found = [await api.acme.patch(f"/v1/inbox/{path}", {"read": True}) for path in paths]
    other = await api.project("other")
    foreign = await other.patch(f"/v1/inbox/ada/{message_id}", {"read": True})

    assert {answer.json["code"] for answer in (*found, foreign)} == {"message_not_found"}
    assert (await listed(api))["unread_count"] == 1


@pytest.mark.parametrize("patch", [{"read": "yes"}, {"read": None}, {"archived": 1}, []])
async def test_a_bad_patch_is_a_422(api: Api, patch: Any) -> None:
    message_id = await deliver(api, "1")

    assert (await api.acme.patch(f"/v1/inbox/ada/{message_id}", patch)).status == 422


async def test_read_all_tells_how_many_were_not_read(api: Api) -> None:
    ids = [await deliver(api, str(number)) for number in range(4)]
    await api.acme.patch(f"/v1/inbox/ada/{ids[0]}", {"read": True})
    await api.acme.patch(f"/v1/inbox/ada/{ids[1]}", {"archived": True})

    first = await api.acme.post("/v1/inbox/ada/read-all")
    second = await api.acme.post("/v1/inbox/ada/read-all")

    assert (first.json["updated"], second.json["updated"]) == (2, 0)
    assert all(item["is_read"] for item in (await listed(api))["items"])


async def test_the_version_grows_with_every_change_and_the_list_knows_it(api: Api) -> None:
    message_id = await deliver(api, "1")
    await api.acme.patch(f"/v1/inbox/ada/{message_id}", {"read": True, "archived": True})

    assert (await listed(api))["version"] == 3
    assert (await api.acme.get("/v1/inbox/ada/unread-count")).json == {
        "unread_count": 0, "version": 3,
    }  # fmt: skip
