"""Every error is a problem document that says what to do and gives nothing away."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.faces.http.conftest import Api
from tests.support.asgi import Answered, Client
from tocsin.domain.errors import Unavailable
from tocsin.faces.http import front
from tocsin.faces.http.exchange import Answer, Request
from tocsin.service import subscribers


def assert_problem(found: Answered, status: int, code: str) -> Any:
    assert found.status == status, found.body
    assert found.headers["content-type"] == "application/problem+json"
    body = found.json
    assert body["status"] == status
    assert body["code"] == code
    assert body["error"] == body["detail"]
    assert body["title"]
    assert body["type"].endswith(code)
    assert body["request_id"] == found.headers["x-request-id"]
    return body


async def test_a_path_that_leads_nowhere_is_a_problem(api: Api) -> None:
    assert_problem(await api.acme.get("/v1/nothing"), 404, "route_not_found")


async def test_a_method_that_a_path_does_not_take_is_a_problem_and_says_which_it_takes(
    api: Api,
) -> None:
    found = await api.acme.call("PUT", "/v1/send", {})

    assert_problem(found, 405, "method_not_allowed")
    assert "POST" in found.headers["allow"]


@pytest.mark.parametrize("path", ["/v1/send", "/v1/batch", "/v1/subscribers", "/v1/templates"])
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"not json", b'{"id":"\xff","to":"\xff","template":"\xff"}', b'{"body":"\\ud800"}'],
)
async def test_what_is_no_json_is_a_400(api: Api, path: str, body: bytes) -> None:
    assert_problem(await api.acme.post(path, body), 400, "malformed_json")


@pytest.mark.parametrize("path", ["/v1/send", "/v1/batch"])
async def test_json_nested_without_end_is_refused(api: Api, path: str) -> None:
    body = b'{"id":"a","to":"a","vars":{"a":' + b"[" * 200_000

    assert_problem(await api.acme.post(path, body), 400, "malformed_json")


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/send", {"to": 5}, "to"),
        ("/v1/send", {"to": "a", "tags": [{"name": "a"}, {"name": 1}]}, "tags[0]"),
        ("/v1/batch", {"subscribers": ["a", 1]}, "subscribers[1]"),
        ("/v1/subscribers", {"id": 5}, "id"),
        ("/v1/subscribers", {"id": "a", "data": []}, "data"),
        ("/v1/templates", {"id": "a", "channel": "email", "body": None}, "body"),
    ],
)
async def test_a_wrong_type_is_a_422_that_names_the_field(
    api: Api, path: str, body: Any, field: str
) -> None:
    problem = assert_problem(await api.acme.post(path, body), 422, "validation_failed")

    assert problem["field"] == field


async def test_a_body_is_not_coerced_into_the_type_that_is_asked_for(api: Api) -> None:
    found = await api.acme.post("/v1/subscribers", {"id": "a", "email": 5})
    text = await api.acme.put(
        "/v1/subscribers/a/preferences", {"preferences": [{"channel": "*", "enabled": "true"}]}
    )

    assert_problem(found, 422, "validation_failed")
    assert_problem(text, 422, "validation_failed")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=-1", "limit"), ("limit=0", "limit"), ("limit=100000", "limit"),
        ("limit=many", "limit"), ("offset=-1", "offset"), ("offset=99999999999999", "offset"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/subscribers", "/v1/templates", "/v1/inbox/a"])
async def test_a_limit_or_offset_out_of_bounds_is_a_422_that_names_it(
    api: Api, path: str, query: str, field: str
) -> None:
    problem = assert_problem(await api.acme.get(f"{path}?{query}"), 422, "validation_failed")

    assert problem["field"] == field


async def test_unknown_query_parameters_and_members_are_ignored(api: Api) -> None:
    assert (await api.acme.get("/v1/subscribers?colour=blue")).status == 200
    assert (await api.acme.post("/v1/subscribers", {"id": "a", "colour": 1})).status == 200


async def test_the_value_of_a_bad_parameter_is_not_repeated(api: Api) -> None:
    found = await api.acme.get("/v1/inbox/a?filter=s3cr3t-value")

    problem = assert_problem(found, 422, "validation_failed")
    assert problem["field"] == "filter"
    assert b"s3cr3t" not in found.body


@pytest.mark.parametrize("path", ["/v1/send", "/v1/subscribers"])
async def test_another_media_type_is_a_415(api: Api, path: str) -> None:
    found = await api.acme.post(path, b"id=a", content_type="application/x-www-form-urlencoded")

    problem = assert_problem(found, 415, "unsupported_media_type")
    assert "application/json" in problem["remedy"]


@pytest.mark.parametrize("path", ["/v1/send", "/v1/subscribers"])
async def test_the_character_zero_is_refused_wherever_it_stands(api: Api, path: str) -> None:
    found = await api.acme.post(path, b'{"id":"a","to":"a","body":"x\\u0000"}')
    escaped = await api.acme.post("/v1/subscribers", b'{"id":"a","first_name":"x\\\\u0000"}')

    assert_problem(found, 422, "nul_character")
    assert escaped.status == 200
    assert_problem(await api.acme.get("/v1/subscribers/a%00b"), 400, "nul_character")
    assert_problem(await api.acme.get("/v1/subscribers?q=a%00"), 400, "nul_character")


async def test_an_id_with_a_slash_can_be_read_back(api: Api) -> None:
    await api.acme.post("/v1/subscribers", {"id": "a/b c%d"})

    found = await api.acme.get("/v1/subscribers/a%2Fb%20c%25d")

    assert found.json["id"] == "a/b c%d"


async def test_a_harmless_request_id_is_echoed_and_any_other_replaced(api: Api) -> None:
    echoed = await api.acme.get("/v1/channels", x_request_id="req-1.A:b")
    hot = await api.acme.post("/v1/send", {}, x_request_id="req-2")
    replaced = await api.acme.get("/v1/channels", x_request_id="a b\tc")
    long = await api.acme.get("/v1/channels", x_request_id="a" * 129)

    assert echoed.headers["x-request-id"] == "req-1.A:b"
    assert hot.headers["x-request-id"] == "req-2"
    assert len(replaced.headers["x-request-id"]) == 16
    assert len(long.headers["x-request-id"]) == 16


async def test_a_database_that_is_away_is_a_503_that_says_when_to_come_back(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise Unavailable("database_lost", "away", remedy="later", retry_after_s=3)

    monkeypatch.setattr(subscribers, "read", away)

    found = await api.acme.get("/v1/subscribers/a")

    assert_problem(found, 503, "database_lost")
    assert found.headers["retry-after"] == "3"


async def test_a_defect_is_a_500_without_detail_and_a_log_line_without_values(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ValueError("jane@example.com is the secret")

    monkeypatch.setattr(subscribers, "read", broken)

    with capture_logs() as logs:
        found = await api.acme.get("/v1/subscribers/a")

    problem = assert_problem(found, 500, "internal_error")
    assert b"jane" not in found.body
    assert "jane" not in repr(logs)
    assert logs[0]["request_id"] == problem["request_id"]
    assert logs[0]["error"] == "ValueError"


async def test_a_defect_of_a_raw_route_is_a_500_too() -> None:
    async def broken(_: Request) -> Answer:
        raise KeyError("jane@example.com")

    async def no_framework(*_: object) -> None:
        raise AssertionError

    class NoCors:
        def headers(self, _: object) -> list[tuple[bytes, bytes]]:
            return []

    face = front.Front(
        no_framework,
        {("GET", "/x"): broken},
        gate=None,
        streams=None,
        cors=NoCors(),  # type: ignore[arg-type]
    )
    with capture_logs() as logs:
        found = await Client(face).get("/x")

    assert_problem(found, 500, "internal_error")
    assert "jane" not in repr(logs)


async def test_a_client_that_leaves_in_the_middle_of_its_body_gets_and_logs_nothing(
    api: Api,
) -> None:
    parts = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return parts.pop(0) if parts else await asyncio.Future()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/v1/send", "raw_path": b"/v1/send",
        "query_string": b"", "headers": [(b"x-api-key", api.key.encode())],
    }  # fmt: skip
    with capture_logs() as logs:
        await api.front(scope, receive, send)

    assert sent == []
    assert logs == []


async def test_a_websocket_is_closed_at_once(api: Api) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await api.front({"type": "websocket", "path": "/"}, asyncio.Future, send)

    assert sent == [{"type": "websocket.close", "code": 1000}]


async def test_head_is_answered_as_get(api: Api) -> None:
    found = await api.acme.call("HEAD", "/v1/channels")

    assert found.status == 200
