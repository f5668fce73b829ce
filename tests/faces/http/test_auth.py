"""Keys and tokens: what each opens, and how soon it stops."""

import asyncio
from typing import Any

import pytest

from tests.faces.http.conftest import ADMIN, Api
from tests.support.asgi import Client
from tocsin.domain.errors import Unavailable
from tocsin.faces.http.app import make
from tocsin.service import keys
from tocsin.service.app import App
from tocsin.service.keys import KeyRing
from tocsin.settings import Settings
from tocsin.store import projects


async def test_without_a_key_or_with_a_wrong_one_notifyds_words_come_back(api: Api) -> None:
    missing = await api.nobody.post("/v1/send", {})
    wrong = await api.nobody.post("/v1/send", {}, x_api_key=f"sk_acme_{'0' * 32}")

    assert (missing.status, missing.json["error"]) == (401, "Missing API key (X-Api-Key header)")
    assert (wrong.status, wrong.json["error"]) == (401, "Invalid API key")
    assert "Bearer" in wrong.headers["www-authenticate"]


@pytest.mark.parametrize("path", ["/v1/subscribers", "/v1/channels", "/v1/inbox/a", "/v1/jobs/1"])
async def test_no_route_of_a_project_is_open(api: Api, path: str) -> None:
    assert (await api.nobody.get(path)).status == 401
    assert (await api.nobody.get(path, x_api_key=ADMIN)).status == 401


async def test_a_key_works_as_header_and_as_bearer(api: Api) -> None:
    bearer = await api.nobody.get("/v1/channels", authorization=f"bearer {api.key}")

    assert bearer.status == 200
    assert (await api.nobody.get("/v1/channels", authorization=f"Basic {api.key}")).status == 401


@pytest.mark.parametrize("key", ["x", "sk_acme_", "sk_acme_zz", "é" * 10, "sk_a'--_" + "0" * 32])
async def test_a_text_that_is_no_key_never_reaches_the_database(
    api: Api, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asked(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(projects, "key_owner", asked)

    assert (await api.nobody.get("/v1/channels", x_api_key=key)).status == 401


async def test_a_key_is_looked_up_once_however_many_ask_at_the_same_time(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    real = projects.key_owner

    async def counted(*args: Any) -> Any:
        nonlocal asked
        asked += 1
        return await real(*args)

    monkeypatch.setattr(projects, "key_owner", counted)
    ring = KeyRing(api.app)

    found = await asyncio.gather(*(ring.project(api.key) for _ in range(50)))

    assert {who.id for who in found} == {"acme"}
    assert asked == 1


async def test_a_lookup_that_was_under_way_when_the_key_changed_is_not_believed(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()
    real = projects.key_owner

    async def slow(*args: Any) -> Any:
        found = await real(*args)
        started.set()
        await go_on.wait()
        return found

    ring = KeyRing(api.app)
    monkeypatch.setattr(projects, "key_owner", slow)
    first = asyncio.create_task(ring.project(api.key))
    await started.wait()
    await api.admin.delete("/v1/admin/projects/acme")
    ring.forget()
    go_on.set()
    await first
    monkeypatch.setattr(projects, "key_owner", real)

    with pytest.raises(Exception, match="Invalid API key"):
        await ring.project(api.key)


async def test_a_database_that_is_away_is_no_invalid_key(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise Unavailable("database_unreachable", "away", retry_after_s=1)

    monkeypatch.setattr(projects, "key_owner", away)

    found = await Client(make(api.app)).get("/v1/channels", x_api_key=api.key)

    assert found.status == 503


async def test_only_so_many_keys_are_remembered(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "CACHED_MAX", 3)
    ring = KeyRing(api.app)
    for number in range(10):
        await ring.numbered(number)

    assert len(ring._entries) == 3


async def test_a_subscriber_token_opens_its_inbox_and_nothing_else(api: Api) -> None:
    browser = api.nobody.with_headers(authorization=f"Bearer {await api.token('ada')}")
    other = await browser.get("/v1/inbox/bob")

    assert (await browser.get("/v1/inbox/ada")).status == 200
    assert (other.status, other.json["error"]) == (403, "Token subscriber mismatch")
    assert (await browser.get("/v1/subscribers")).status == 401
    assert (await browser.post("/v1/send", {"to": "a"})).status == 401


async def test_a_subscriber_token_ends_when_it_says(api: Api) -> None:
    issued = await api.acme.post("/v1/auth/subscriber-token", {"subscriber_id": "ada"})
    browser = api.nobody.with_headers(authorization=f"Bearer {issued.json['token']}")

    assert issued.json["expires_at"] == "2026-03-02T14:00:00Z"
    assert issued.json["ttl_hours"] == 2
    api.clock.advance(hours=1, minutes=59)
    assert (await browser.get("/v1/inbox/ada")).status == 200
    api.clock.advance(minutes=1)
    assert (await browser.get("/v1/inbox/ada")).status == 401


@pytest.mark.parametrize(
    ("asked", "hours"),
    [({"ttl_hours": 0}, 1), ({"ttl_hours": 99}, 24), ({"ttl_hours": -10**30}, 1),
     ({"ttl_secs": 1800}, 0.5), ({"ttl_secs": 1}, 1 / 60)],
)  # fmt: skip
async def test_a_tokens_life_is_brought_into_bounds(
    api: Api, asked: dict[str, int], hours: float
) -> None:
    issued = await api.acme.post("/v1/auth/subscriber-token", {"subscriber_id": "ada"} | asked)

    assert issued.json["ttl_hours"] == pytest.approx(hours)


async def test_the_token_of_a_deleted_project_does_not_open_its_successor(api: Api) -> None:
    token = await api.token("ada")
    await api.admin.delete("/v1/admin/projects/acme")
    await api.project("acme")

    found = await api.nobody.get("/v1/inbox/ada", authorization=f"Bearer {token}")

    assert found.status == 401


async def test_the_reader_reads_and_does_not_write(api: Api) -> None:
    refused = await api.reader.post("/v1/admin/projects", {"id": "x"})

    assert (await api.reader.get("/v1/admin/projects")).status == 200
    assert refused.status == 403
    assert refused.json["error"] == "Read-only key: this action needs the admin key"
    assert (await api.acme.get("/v1/admin/projects")).json["error"] == "Admin access required"
    assert (await api.nobody.get("/v1/admin/projects")).status == 401


async def test_without_a_configured_operator_key_one_is_made_and_shown_once(api: Api) -> None:
    settings = Settings()
    plain = App(**{
        name: getattr(api.app, name) for name in App.__dataclass_fields__
    } | {"settings": settings})  # fmt: skip

    key = await keys.ensure_operator_key(plain)
    again = await keys.ensure_operator_key(plain)
    configured = await keys.ensure_operator_key(api.app)

    assert (again, configured) == (None, None)
    assert key is not None
    face = Client(make(plain))
    assert (await face.get("/v1/admin/projects", x_api_key=key)).status == 200
    assert (await face.get("/v1/admin/projects", x_api_key=f"{key}0")).status == 401
    assert (await face.get("/v1/admin/projects", x_api_key="")).status == 401


async def test_no_key_stands_in_the_database(api: Api) -> None:
    row = await projects.key_owner(api.app.db, keys.hash_key(api.key), api.clock.now())

    assert row is not None
    assert await projects.key_owner(api.app.db, api.key.encode(), api.clock.now()) is None


async def test_the_token_of_a_deleted_person_does_not_open_their_successors_inbox(
    api: Api,
) -> None:
    await api.acme.post("/v1/subscribers", {"id": "ada"})
    token = await api.token("ada")
    api.clock.advance(seconds=2)
    await api.acme.delete("/v1/subscribers/ada")
    await api.acme.post("/v1/subscribers", {"id": "ada"})
    old = await api.nobody.get("/v1/inbox/ada", authorization=f"Bearer {token}")
    api.clock.advance(seconds=2)
    new = await api.nobody.get("/v1/inbox/ada", authorization=f"Bearer {await api.token('ada')}")

    assert (old.status, new.status) == (401, 200)
