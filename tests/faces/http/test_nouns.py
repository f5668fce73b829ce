"""Templates, suppressions, unsubscribe links, health and channels over the API."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.faces.http.conftest import Api
from tests.support.asgi import Client
from tests.support.eventually import eventually
from tests.support.postgres import run_on
from tocsin.domain.errors import Unavailable
from tocsin.domain.ids import uuid7
from tocsin.faces.http.app import make
from tocsin.service import unsubscribe
from tocsin.store import workers
from tocsin.wire.tokens import derive_key

TEMPLATE = {"id": "welcome", "channel": "email", "subject": "Hi", "body": "Hello {{name}}"}


def link(api: Api, email: str) -> str:
    """The token of the link in a message to this address."""
    key = derive_key(api.app.signing_secret, "unsubscribe")
    return unsubscribe.token(key, api.who.number, email, api.clock.now())


async def test_a_template_has_one_variant_for_each_channel(api: Api) -> None:
    saved = await api.acme.post("/v1/templates", TEMPLATE | {"topic": "News"})
    await api.acme.post("/v1/templates", {"id": "welcome", "channel": "inapp", "body": "Hi"})
    await api.acme.post("/v1/templates", TEMPLATE | {"body": "Hello again"})
    found = await api.acme.get("/v1/templates/welcome")
    page = await api.acme.get("/v1/templates?limit=1&channel=email")

    assert saved.json == {"success": True, "id": "welcome", "channel": "email"}
    assert found.json["template_id"] == "welcome"
    assert [(v["channel"], v["body"], v["topic"]) for v in found.json["variants"]] == [
        ("email", "Hello again", None), ("in_app", "Hi", None),
    ]  # fmt: skip
    assert page.json["total"] == 1
    assert (await api.acme.get("/v1/templates")).json["total"] == 2


async def test_deleting_a_template_deletes_all_its_variants(api: Api) -> None:
    await api.acme.post("/v1/templates", TEMPLATE)
    await api.acme.post("/v1/templates", TEMPLATE | {"channel": "sms"})

    deleted = await api.acme.delete("/v1/templates/welcome")

    assert deleted.json == {"success": True, "deleted": 2}
    assert (await api.acme.delete("/v1/templates/welcome")).status == 404
    assert (await api.acme.get("/v1/templates/welcome")).status == 404


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"channel": "pigeon"}, "channel"), ({"topic": "*"}, "topic"), ({"id": ""}, "id"),
     ({"subject": "a\r\nBcc: b@c.example"}, "subject"), ({"body": 1}, "body")],
)  # fmt: skip
async def test_a_bad_member_of_a_template_is_named(
    api: Api, fields: dict[str, Any], field: str
) -> None:
    found = await api.acme.post("/v1/templates", TEMPLATE | fields)

    assert (found.status, found.json["field"]) == (422, field)


async def suppressed(api: Api, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.acme.get(f"/v1/suppressions{query}")).json["data"]
    return found


async def test_a_suppression_is_one_for_each_address_and_never_narrows(api: Api) -> None:
    email = "Ünï.Ada@Example.com".replace("Ü", "U").replace("ï", "i")
    first = await api.acme.post(
        "/v1/suppressions", {"email": email, "scope": "marketing", "detail": "asked"}
    )
    second = await api.acme.post("/v1/suppressions", {"email": email.upper()})
    third = await api.acme.post("/v1/suppressions", {"email": email, "scope": "marketing"})

    assert first.json["suppression"]["email"] == "u***@example.com"
    assert first.json["suppression"]["reason"] == "unsubscribe"
    assert [s.json["suppression"]["scope"] for s in (first, second, third)] == [
        "marketing", "all", "all",
    ]  # fmt: skip
    assert len({s.json["suppression"]["id"] for s in (first, second, third)}) == 1
    (row,) = await suppressed(api)
    assert (row["email"], row["reason"], row["scope"]) == ("uni.ada@example.com", "manual", "all")


async def test_a_released_suppression_stays_as_a_record(api: Api) -> None:
    made = await api.acme.post("/v1/suppressions", {"email": "a@b.example"})
    path = f"/v1/suppressions/{made.json['suppression']['id']}"
    other = await api.project("other")

    assert (await other.delete(path)).status == 404
    assert (await api.acme.delete(path)).json["success"] is True
    assert (await api.acme.delete(path)).status == 404
    assert (await api.acme.delete("/v1/suppressions/nothing")).status == 404
    assert await suppressed(api) == []
    (row,) = await suppressed(api, "?include_released=true")
    assert row["released_at"] == "2026-03-02T12:00:00Z"
    again = await api.acme.post("/v1/suppressions", {"email": "a@b.example"})
    assert again.json["suppression"]["id"] != made.json["suppression"]["id"]


async def test_a_non_ascii_address_is_masked_without_harm(api: Api) -> None:
    made = await api.acme.post("/v1/suppressions", {"email": "öla@exämple.com"})

    assert made.json["suppression"]["email"].startswith("ö***@")


@pytest.mark.parametrize(
    ("body", "status"),
    [({"email": "nobody"}, 422), ({"email": "a@b.example", "scope": "some"}, 400), ({}, 422)],
)
async def test_a_bad_suppression_is_refused(api: Api, body: dict[str, Any], status: int) -> None:
    assert (await api.acme.post("/v1/suppressions", body)).status == status


async def test_opening_an_unsubscribe_link_changes_nothing(api: Api) -> None:
    token = link(api, "a|da@example.com")

    page = await api.nobody.get(f"/u/{token}")

    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["referrer-policy"] == "no-referrer"
    assert b"<button>" in page.body
    assert b"a|da" not in page.body
    assert await suppressed(api) == []


async def test_one_click_unsubscribes_from_marketing_however_often(api: Api) -> None:
    token = link(api, "a|da@example.com")
    form = {"content_type": "application/x-www-form-urlencoded"}
    for _ in range(2):
        done = await api.nobody.post(f"/u/{token}", b"List-Unsubscribe=One-Click", **form)
        assert done.status == 200

    (row,) = await suppressed(api)
    assert (row["email"], row["scope"]) == ("a|da@example.com", "marketing")
    assert row["reason"] == "unsubscribe"


async def test_a_forged_or_expired_link_is_a_404_page(api: Api) -> None:
    token = link(api, "ada@example.com")
    forged = token[:-1] + ("A" if token[-1] != "A" else "B")

    assert (await api.nobody.get(f"/u/{forged}")).status == 404
    assert (await api.nobody.post("/u/nothing")).status == 404
    api.clock.advance(days=401)
    expired = await api.nobody.post(f"/u/{token}")
    assert expired.status == 404
    assert b"<h1>" in expired.body
    assert await suppressed(api) == []


async def test_health_is_a_503_until_a_worker_makes_progress_and_after_it_stops(api: Api) -> None:
    none = await Client(make(api.app)).get("/v1/health")
    worker = uuid7(api.clock.now())
    await workers.beat(
        api.app.db, worker=worker, host="h", version="1", lanes=[], now=api.clock.now()
    )
    alive = await Client(make(api.app)).get("/v1/health")
    api.clock.advance(seconds=16)
    stuck = await Client(make(api.app)).get("/v1/health")

    assert (none.status, none.json["status"], none.json["db"]) == (503, "degraded", "ok")
    assert (alive.status, alive.json["status"]) == (200, "ok")
    assert set(alive.json) >= {"status", "db", "version", "commit", "built_at_epoch"}
    assert len(alive.json["workers"]) == 1
    assert stuck.status == 503


async def test_health_is_a_503_when_the_database_is_away(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise Unavailable("database_unreachable", "away", retry_after_s=1)

    monkeypatch.setattr(workers, "alive", away)

    found = await api.nobody.get("/v1/health")

    assert (found.status, found.json["db"]) == (503, "error")


async def test_health_is_a_503_when_the_database_only_reads(api: Api) -> None:
    db, now = api.app.db, api.clock.now()
    await workers.beat(db, worker=uuid7(now), host="h", version="1", lanes=[], now=now)
    name = urlsplit(db.url).path.lstrip("/")
    await run_on(
        db.url,
        f"ALTER DATABASE {name} SET default_transaction_read_only = on",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    found = []

    async def only_reads() -> bool:
        # A new probe each time, and a lost connection of the pool may answer first.
        found.append(await Client(make(api.app)).get("/v1/health"))
        return found[-1].json["db"] == "read_only"

    await eventually(only_reads)
    assert {answer.status for answer in found} == {503}
    assert len(found[-1].json["workers"]) == 1


async def test_health_asks_the_database_once_for_all_who_ask_at_once(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    real = workers.alive

    async def counted(*args: Any, **named: Any) -> Any:
        nonlocal asked
        asked += 1
        return await real(*args, **named)

    monkeypatch.setattr(workers, "alive", counted)
    for _ in range(20):
        await api.nobody.get("/v1/health")

    assert asked <= 2


async def test_channels_tell_what_is_listed_and_what_is_set_up(api: Api) -> None:
    found = (await api.acme.get("/v1/channels")).json["channels"]

    assert len(found) == 8
    assert found["email"] == {"allowed": True, "configured": True}
    assert found["sms"] == {"allowed": False, "configured": False}


async def test_the_inbox_needs_no_row_for_a_token_to_be_issued(api: Api) -> None:
    issued = await api.acme.post("/v1/auth/subscriber-token", {"subscriber_id": "new"})

    assert issued.json["project_id"] == "acme"
    assert issued.json["subscriber_id"] == "new"
    assert issued.json["token"].count(".") == 2
