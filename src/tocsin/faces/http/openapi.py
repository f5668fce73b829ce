"""OpenAPI 3.1 from the handlers, with the problem document of every operation, and a page that shows it."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

import msgspec
from litestar import Litestar
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.spec import Components, SecurityScheme, Tag

from tocsin.faces.http.exchange import JSON, Answer, Request, Route
from tocsin.faces.http.problems import MEDIA_TYPE, Problem

DESCRIPTION: Final = (
    "Email, SMS, WhatsApp, push, chat and in-app notifications from one call. "
    "Every error is a problem document (RFC 9457) whose `code` is stable and whose `remedy` says "
    "what to do."
)
_TAGS: Final = (
    ("Send", "One call, one message: to one person or to many."),
    ("Jobs", "What became of a send."),
    ("Subscribers", "The people of a project, and what they want."),
    ("Templates", "What messages say."),
    ("Inbox", "A person's in-app messages, live."),
    ("Suppressions", "Addresses that get nothing, or no marketing."),
    ("Unsubscribe", "The page behind a message's link."),
    ("Projects", "For the operator."),
    ("Service", "The service itself."),
)
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; frame-ancestors 'none'"
)
_PAGE_HEADERS: Final = (
    ("content-type", "text/html; charset=utf-8"),
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
)  # fmt: skip


def answers(shape: type[Any], statuses: Sequence[int] = (200,)) -> dict[int, ResponseSpec]:
    """What a handler that answers with ready bytes answers."""
    return {status: ResponseSpec(shape, generate_examples=False) for status in statuses}


def config(version: str) -> OpenAPIConfig:
    """What the document says about the whole."""
    return OpenAPIConfig(
        title="Tocsin",
        version=version,
        description=DESCRIPTION,
        tags=[Tag(name=name, description=text) for name, text in _TAGS],
        use_handler_docstrings=True,
        components=Components(
            security_schemes={
                "projectKey": _header_key("A project's key."),
                "operatorKey": _header_key("The operator's key."),
                "bearer": SecurityScheme(
                    type="http", scheme="bearer", description="The same keys; a subscriber's token."
                ),
            }
        ),
    )


def _header_key(text: str) -> SecurityScheme:
    return SecurityScheme(
        type="apiKey", security_scheme_in="header", name="X-Api-Key", description=text
    )


def document(framework: Litestar) -> bytes:
    """The OpenAPI document as JSON."""
    schema: dict[str, Any] = framework.openapi_schema.to_schema()
    schemas = schema["components"]["schemas"]
    _, extra = msgspec.json.schema_components([Problem], ref_template="#/components/schemas/{name}")
    schemas |= extra
    problem = {
        "description": "A problem document.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for item in schema["paths"].values():
        for operation in item.values():
            operation["responses"].pop("400", None)
            operation["responses"]["default"] = problem
    alias = schema["paths"].pop("/v1/schedule")
    alias["post"]["description"] = "Another name of `/v1/send`."
    schema["paths"]["/v1/schedule"] = alias
    schema["paths"]["/v1/inbox/{subscriber_id}/stream"] = {"get": _stream_operation(problem)}
    return msgspec.json.encode(schema)


def _stream_operation(problem: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "tags": ["Inbox"],
        "operationId": "StreamInbox",
        "summary": "StreamInbox",
        "description": "Server-sent events of an inbox: `new_notification`, `count_update`, "
        "`read`, `unread`, `archived`, `unarchived`, `todo`, `read_all`, `reset` (fetch the list "
        "again) and `token_expired`, each as JSON with its `type`. The id of an event is the "
        "inbox's version; a reconnect with `Last-Event-ID` goes on from there.",
        "parameters": [
            {"name": "subscriber_id", "in": "path", "required": True, "schema": text},
            {"name": "ticket", "in": "query", "required": False, "schema": text},
            {"name": "token", "in": "query", "required": False, "schema": text},
            {"name": "last_event_id", "in": "query", "required": False, "schema": text},
        ],
        "responses": {
            "200": {
                "description": "The stream.",
                "content": {"text/event-stream": {"schema": text}},
            },
            "default": problem,
        },
        "security": [{"bearer": []}, {"projectKey": []}, {}],
    }


def routes(framework: Litestar) -> dict[tuple[str, str], Route]:
    """/openapi.json and /docs; both are made once, when first asked for."""
    made: list[Answer] = []

    async def openapi(_: Request) -> Answer:
        if not made:
            made.append(Answer(200, document(framework), (JSON,)))
        return made[0]

    async def docs(_: Request) -> Answer:
        page = files("tocsin.faces.http").joinpath("docs.html").read_bytes()
        return Answer(200, page, _PAGE_HEADERS)

    return {("GET", "/openapi.json"): openapi, ("GET", "/docs"): docs}
