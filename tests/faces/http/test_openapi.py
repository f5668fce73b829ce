"""The API describes itself: valid OpenAPI 3.1, every route in it, a page that shows it offline."""

import re
from typing import Any

from openapi_spec_validator import validate

from tests.faces.http.conftest import Api

METHODS = {"get", "post", "put", "patch", "delete"}


async def document(api: Api) -> Any:
    return (await api.nobody.get("/openapi.json")).json


async def test_the_document_is_valid_openapi(api: Api) -> None:
    found = await document(api)

    validate(found)
    assert found["openapi"].startswith("3.1")


async def test_every_operation_is_described_and_has_a_problem_document(api: Api) -> None:
    for path, item in (await document(api))["paths"].items():
        assert set(item) <= METHODS
        for method, operation in item.items():
            assert operation["description"], (path, method)
            assert operation["tags"], (path, method)
            error = operation["responses"]["default"]["content"]
            assert "application/problem+json" in error, (path, method)


async def test_bodies_and_answers_are_described_by_their_members(api: Api) -> None:
    found = await document(api)
    schemas = found["components"]["schemas"]

    assert set(schemas["SendRequest"]["properties"]) >= {"to", "channels", "idempotency_key"}
    assert set(schemas["Receipt"]["properties"]) >= {"job_ids", "skipped"}
    assert schemas["SubscriberIn"]["required"] == ["id"]
    assert set(schemas["Problem"]["properties"]) >= {"code", "remedy", "error", "request_id"}


async def test_the_page_needs_nothing_from_anywhere_else(api: Api) -> None:
    page = await api.nobody.get("/docs")

    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert re.findall(rb"https?://", page.body) == []
    assert b"/openapi.json" in page.body
