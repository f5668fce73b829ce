"""Subscribers and their preferences."""

from typing import Any

import pytest

from tests.faces.http.conftest import Api
from tocsin.domain.ids import uuid7
from tocsin.store.inbox import NewMessage


async def test_a_subscriber_reads_back_as_stored(api: Api) -> None:
    saved = await api.acme.post(
        "/v1/subscribers",
        {
            "id": "ada", "email": "Ada@Example.COM", "phone": "+33 6 12 34 56 78",
            "first_name": "Ada", "locale": "en", "timezone": "Europe/London", "data": {"a": 1},
        },
    )  # fmt: skip
    found = await api.acme.get("/v1/subscribers/ada")

    assert saved.json == {"success": True, "id": "ada", "project_id": "acme", "created": True}
    assert found.json == {
        "id": "ada", "project_id": "acme", "email": "Ada@example.com", "phone": "+33612345678",
        "first_name": "Ada", "last_name": None, "locale": "en", "timezone": "Europe/London",
        "data": {"a": 1}, "created_at": "2026-03-02T12:00:00Z",
        "updated_at": "2026-03-02T12:00:00Z",
    }  # fmt: skip


async def test_an_update_keeps_what_it_does_not_name_and_clears_what_is_null(api: Api) -> None:
    await api.acme.post(
        "/v1/subscribers",
        {"id": "ada", "email": "a@b.example", "locale": "en", "data": {"a": 1, "b": {"c": 1}}},
    )
    api.clock.advance(seconds=5)
    saved = await api.acme.post(
        "/v1/subscribers", {"id": "ada", "email": None, "data": {"b": 2, "d": 3}}
    )
    found = (await api.acme.get("/v1/subscribers/ada")).json

    assert saved.json["created"] is False
    assert found["locale"] == "en"
    assert found["email"] is None
    assert found["data"] == {"a": 1, "b": 2, "d": 3}
    assert found["created_at"] < found["updated_at"]
    await api.acme.post("/v1/subscribers", {"id": "ada", "data": None})
    assert (await api.acme.get("/v1/subscribers/ada")).json["data"] == {}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"id": ""}, "id"), ({"id": "x" * 257}, "id"), ({"id": "a\nb"}, "id"),
        ({"email": "nobody"}, "email"), ({"email": "a@b.example\r\nBcc: x@y.example"}, "email"),
        ({"phone": "call me"}, "phone"), ({"timezone": "Mars/Phobos"}, "timezone"),
        ({"timezone": "../../etc/passwd"}, "timezone"), ({"first_name": "A\r\nB"}, "first_name"),
        ({"data": {"a": "x" * 300_000}}, "data"),
    ],
)  # fmt: skip
async def test_a_bad_member_is_named_and_not_repeated(
    api: Api, fields: dict[str, Any], field: str
) -> None:
    found = await api.acme.post("/v1/subscribers", {"id": "ada"} | fields)

    assert (found.status, found.json["field"]) == (422, field)
    assert b"Bcc" not in found.body


async def test_people_are_listed_by_page_and_found_by_words_as_typed(api: Api) -> None:
    for number in range(3):
        await api.acme.post("/v1/subscribers", {"id": f"p{number}", "last_name": "100%_\\"})
    await api.acme.post("/v1/subscribers", {"id": "other", "email": "x@needle.example"})

    page = (await api.acme.get("/v1/subscribers?limit=2&offset=1")).json
    found = (await api.acme.get("/v1/subscribers?q=NEEDLE")).json
    percent = (await api.acme.get("/v1/subscribers?q=%25_%5C")).json
    wild = (await api.acme.get("/v1/subscribers?q=_%25")).json

    assert [p["id"] for p in page["items"]] == ["p0", "p1"]
    assert (page["total"], page["limit"], page["offset"]) == (4, 2, 1)
    assert [p["id"] for p in found["items"]] == ["other"]
    assert percent["total"] == 3
    assert wild["total"] == 0


async def test_one_project_does_not_see_the_people_of_another(api: Api) -> None:
    other = await api.project("other")
    await other.post("/v1/subscribers", {"id": "ada"})

    assert (await api.acme.get("/v1/subscribers/ada")).status == 404
    assert (await api.acme.delete("/v1/subscribers/ada")).status == 404
    assert (await api.acme.get("/v1/subscribers")).json["total"] == 0
    assert (await api.acme.get("/v1/inbox/ada")).json["total"] == 0


async def test_a_deleted_person_leaves_nothing_behind(api: Api) -> None:
    await api.acme.post("/v1/subscribers", {"id": "ada", "email": "ada@example.com"})
    await api.acme.put(
        "/v1/subscribers/ada/preferences", {"preferences": [{"channel": "*", "enabled": False}]}
    )
    await api.deliver(NewMessage(uuid7(api.clock.now()), api.who.number, "ada", "hi", "bell"))
    ticket = (await api.acme.post("/v1/inbox/ada/stream-ticket")).json["ticket"]

    deleted = await api.acme.delete("/v1/subscribers/ada")

    assert deleted.json == {"success": True}
    assert (await api.acme.get("/v1/subscribers/ada")).status == 404
    assert (await api.acme.get("/v1/subscribers/ada/preferences")).json == {"preferences": []}
    inbox = (await api.acme.get("/v1/inbox/ada")).json
    assert (inbox["total"], inbox["unread_count"]) == (0, 0)
    assert (await api.nobody.get(f"/v1/inbox/ada/stream?ticket={ticket}")).status == 401
    assert (await api.acme.delete("/v1/subscribers/ada")).status == 404


async def test_preferences_change_only_what_they_name(api: Api) -> None:
    await api.acme.post("/v1/subscribers", {"id": "ada"})
    path = "/v1/subscribers/ada/preferences"
    first = await api.acme.put(
        path,
        {
            "preferences": [
                {"channel": "fcm", "enabled": False},
                {"channel": "*", "topic": "News", "enabled": False},
                {"channel": "email", "workflow_id": "News", "enabled": True},
                {"channel": "push", "enabled": True},
            ]
        },
    )
    second = await api.acme.put(path, {"preferences": [{"channel": "push", "enabled": False}]})
    found = (await api.acme.get(path)).json["preferences"]

    assert first.json == {"success": True, "updated": 3}
    assert second.json["updated"] == 1
    assert found == [
        {"channel": "*", "workflow_id": None, "topic": "news", "enabled": False},
        {"channel": "email", "workflow_id": "News", "topic": None, "enabled": True},
        {"channel": "push", "workflow_id": None, "topic": None, "enabled": False},
    ]


async def test_preferences_of_nobody_are_a_404_and_not_a_500(api: Api) -> None:
    found = await api.acme.put(
        "/v1/subscribers/nobody/preferences", {"preferences": [{"channel": "*", "enabled": True}]}
    )

    assert found.status == 404


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        ({"channel": "pigeon"}, "preferences[0].channel"),
        ({"channel": "*", "topic": "*"}, "preferences[0].topic"),
        ({"channel": "*", "topic": "a b"}, "preferences[0].topic"),
        ({"channel": "*", "workflow_id": "x" * 300}, "preferences[0].workflow_id"),
    ],
)
async def test_a_bad_preference_is_named(api: Api, choice: dict[str, Any], field: str) -> None:
    await api.acme.post("/v1/subscribers", {"id": "ada"})

    found = await api.acme.put(
        "/v1/subscribers/ada/preferences", {"preferences": [choice | {"enabled": True}]}
    )

    assert (found.status, found.json["field"]) == (422, field)
