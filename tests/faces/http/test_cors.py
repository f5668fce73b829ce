"""Browsers of configured origins may call every route, hot and framework's, and others none."""

import pytest

from tests.faces.http.conftest import ORIGIN, Api

PATHS = ["/v1/send", "/v1/inbox/ada", "/v1/inbox/ada/stream", "/v1/nothing"]


@pytest.mark.parametrize("path", PATHS)
async def test_a_preflight_of_a_configured_origin_is_allowed(api: Api, path: str) -> None:
    found = await api.nobody.call(
        "OPTIONS", path, origin=ORIGIN, access_control_request_method="POST",
        access_control_request_headers="authorization, idempotency-key, last-event-id",
    )  # fmt: skip

    assert found.status == 204
    assert found.headers["access-control-allow-origin"] == ORIGIN
    allowed = found.headers["access-control-allow-headers"].lower()
    assert {"authorization", "idempotency-key", "last-event-id"} <= set(allowed.split(", "))
    assert "PATCH" in found.headers["access-control-allow-methods"]


@pytest.mark.parametrize("path", PATHS)
async def test_errors_are_readable_for_a_configured_origin(api: Api, path: str) -> None:
    found = await api.nobody.post(path, {}, origin=ORIGIN)

    assert found.status >= 400
    assert found.headers["access-control-allow-origin"] == ORIGIN
    assert found.headers["vary"] == "Origin"
    assert "x-request-id" in found.headers["access-control-expose-headers"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"{ORIGIN}.evil.example"])
async def test_any_other_origin_is_not_allowed(api: Api, origin: str) -> None:
    found = await api.acme.get("/v1/channels", origin=origin)
    hot = await api.acme.post("/v1/send", {}, origin=origin)
    preflight = await api.nobody.call(
        "OPTIONS", "/v1/send", origin=origin, access_control_request_method="POST"
    )

    for answer in (found, hot, preflight):
        assert "access-control-allow-origin" not in answer.headers
