"""Projects: made, changed, given new keys, deleted."""

from typing import Any

import pytest

from tests.faces.http.conftest import Api


async def test_a_new_project_shows_its_key_once_and_it_works(api: Api) -> None:
    made = await api.admin.post("/v1/admin/projects", {"id": "shop"})
    key = made.json["project"]["api_key"]
    listed = await api.reader.get("/v1/admin/projects")

    assert made.json["success"] is True
    assert made.json["warning"]
    assert key.startswith("sk_shop_")
    assert len(key) == len("sk_shop_") + 32
    assert (await api.nobody.get("/v1/channels", x_api_key=key)).status == 200
    assert key.encode() not in listed.body
    shop = next(p for p in listed.json["projects"] if p["id"] == "shop")
    assert shop["channels"] == ["email", "in_app"]
    assert shop["rate_limit_per_min"] == 600
    assert shop["name"] == "shop"
    assert listed.json["total"] == 2


async def test_an_id_that_is_taken_is_a_conflict_with_a_hint(api: Api) -> None:
    found = await api.admin.post("/v1/admin/projects", {"id": "acme"})

    assert found.status == 409
    assert found.json["code"] == "project_exists"
    assert "rotate-key" in found.json["hint"]


@pytest.mark.parametrize(
    "bad", ["", "A", "a b", "-a", "_a", "a" * 64, "a|b", "a:b", "é", "a\n", "a/b"]
)
async def test_a_project_id_that_could_confuse_anything_is_refused(api: Api, bad: str) -> None:
    found = await api.admin.post("/v1/admin/projects", {"id": bad})

    assert found.status == 422
    assert found.json["field"] == "id"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"rate_limit_per_min": -1}, "rate_limit_per_min"),
        ({"rate_limit_per_min": 10**12}, "rate_limit_per_min"),
        ({"channels": ["email", "pigeon"]}, "channels[1]"),
        ({"from_email": "nobody"}, "from_email"),
        ({"from_email": "a@b.example\r\nBcc: c@d.example"}, "from_email"),
        ({"from_name": "A\r\nBcc: c@d.example"}, "from_name"),
        ({"weight": 0}, "weight"),
        ({"settings": {"a": "x" * 70_000}}, "settings"),
    ],
)
async def test_a_bad_member_of_a_project_is_named(
    api: Api, fields: dict[str, Any], field: str
) -> None:
    found = await api.admin.post("/v1/admin/projects", {"id": "shop"} | fields)

    assert found.status == 422
    assert found.json["field"] == field


async def test_a_patch_changes_what_it_names_and_leaves_the_rest(api: Api) -> None:
    path = "/v1/admin/projects/acme"
    first = await api.admin.patch(
        path,
        {
            "name": "Acme", "channels": ["in_app", "inapp", "sms"], "from_email": "a@Acme.example",
            "from_name": "Acme", "rate_limit_per_min": 50, "tracking": {"opens": True},
            "send_window": {"start": "09:00", "end": "18:00", "tz": "Europe/Paris"},
        },
    )  # fmt: skip
    second = await api.admin.patch(
        path, {"from_email": "", "send_window": None, "rate_limit_per_min": None}
    )

    assert first.json["project"]["channels"] == ["in_app", "sms"]
    assert first.json["project"]["from_email"] == "a@acme.example"
    assert first.json["project"]["settings"]["send_window"]["tz"] == "Europe/Paris"
    project = second.json["project"]
    assert project["from_email"] is None
    assert project["from_name"] == "Acme"
    assert project["rate_limit_per_min"] is None
    assert "send_window" not in project["settings"]
    assert project["settings"]["tracking"]["opens"] is True


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"send_window": {"start": "9", "end": "18:00"}}, "send_window.start"),
        ({"send_window": {"start": "09:00", "end": "18:00", "tz": "Mars"}}, "send_window.tz"),
        ({"tracking": {"applies_to": "some"}}, "tracking.applies_to"),
        ({"tracking": "yes"}, "tracking"),
        ({"name": None}, "name"),
    ],
)
async def test_a_bad_patch_is_refused_whole(api: Api, fields: dict[str, Any], field: str) -> None:
    found = await api.admin.patch("/v1/admin/projects/acme", {"weight": 9} | fields)
    listed = await api.admin.get("/v1/admin/projects")

    assert (found.status, found.json["field"]) == (422, field)
    assert listed.json["projects"][0]["weight"] == 1


async def test_a_rotated_key_works_through_its_grace_period_and_no_longer(api: Api) -> None:
    rotated = await api.admin.post("/v1/admin/projects/acme/rotate-key")
    new = api.nobody.with_headers(x_api_key=rotated.json["new_api_key"])

    assert rotated.json["previous_key_valid_until"] == "2026-03-03T12:00:00Z"
    assert (await new.get("/v1/channels")).status == 200
    assert (await api.acme.get("/v1/channels")).status == 200
    api.clock.advance(hours=24)
    api.app.notifier.hint("projects")
    assert (await api.acme.get("/v1/channels")).status == 401
    assert (await new.get("/v1/channels")).status == 200


async def test_a_key_rotated_without_grace_stops_at_once(api: Api) -> None:
    await api.admin.post("/v1/admin/projects/acme/rotate-key", {"grace_hours": 0})

    assert (await api.acme.get("/v1/channels")).status == 401


async def test_a_second_rotation_ends_the_key_before_the_last(api: Api) -> None:
    second = await api.admin.post("/v1/admin/projects/acme/rotate-key")
    await api.admin.post("/v1/admin/projects/acme/rotate-key")

    assert (await api.acme.get("/v1/channels")).status == 401
    previous = api.nobody.with_headers(x_api_key=second.json["new_api_key"])
    assert (await previous.get("/v1/channels")).status == 200


async def test_the_previous_key_can_be_revoked_early(api: Api) -> None:
    await api.admin.post("/v1/admin/projects/acme/rotate-key")
    assert (await api.acme.get("/v1/channels")).status == 200

    revoked = await api.admin.post("/v1/admin/projects/acme/revoke-secondary")

    assert revoked.json == {"success": True}
    assert (await api.acme.get("/v1/channels")).status == 401


async def test_an_unknown_project_is_a_404_whatever_is_done_to_it(api: Api) -> None:
    path = "/v1/admin/projects/nobody"
    found = [
        await api.admin.patch(path, {}),
        await api.admin.post(f"{path}/rotate-key"),
        await api.admin.post(f"{path}/revoke-secondary"),
        await api.admin.delete(path),
    ]

    assert {answer.status for answer in found} == {404}
    assert all(b"sk_" not in answer.body for answer in found)


async def test_a_deleted_project_is_gone_and_its_id_is_free_for_a_new_one(api: Api) -> None:
    await api.acme.post("/v1/subscribers", {"id": "ada"})
    deleted = await api.admin.delete("/v1/admin/projects/acme")
    again = await api.project("acme")

    assert deleted.json == {"success": True}
    assert (await api.acme.get("/v1/channels")).status == 401
    assert (await again.get("/v1/subscribers/ada")).status == 404
    assert (await again.get("/v1/channels")).status == 200


async def test_pages_of_projects_know_the_total(api: Api) -> None:
    for name in ("b1", "b2"):
        await api.project(name)

    page = await api.admin.get("/v1/admin/projects?limit=1&offset=1")
    past = await api.admin.get("/v1/admin/projects?offset=50")

    assert [p["id"] for p in page.json["projects"]] == ["b1"]
    assert (page.json["total"], past.json["total"]) == (3, 3)
    assert past.json["projects"] == []
