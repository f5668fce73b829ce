"""The HTTP face: routes, framework and front put together over one App."""

from typing import Any, Final

from litestar import Litestar, Response
from litestar.datastructures import State
from litestar.types import ControllerRouterHandler

from tocsin.faces.http import hot, openapi, problems
from tocsin.faces.http.cors import Cors
from tocsin.faces.http.front import Front, unslashed
from tocsin.faces.http.given import Asked, StrictRequest, providers
from tocsin.faces.http.identity import Gate
from tocsin.faces.http.routes import (
    inbox,
    jobs,
    projects,
    send,
    service,
    subscribers,
    suppressions,
    templates,
    unsubscribe,
)
from tocsin.faces.http.streams import PING_S, Streams
from tocsin.service.app import App
from tocsin.service.inbox_feed import SWEEP_S

ROUTERS: Final[tuple[ControllerRouterHandler, ...]] = tuple(
    module.router
    for module in (
        send, jobs, subscribers, templates, inbox, suppressions, unsubscribe, projects, service,
    )
)  # fmt: skip


def _problem(request: Asked, error: Exception) -> Response[bytes]:
    answer = problems.answer(error, str(request.scope["state"].get("request_id", "")))
    headers = dict(answer.headers)
    return Response(
        answer.body,
        status_code=answer.status,
        media_type=headers.pop("content-type"),
        headers=headers,
    )


def _slashed(app: Any) -> Any:
    return unslashed(app)


def framework(app: App, gate: Gate) -> Litestar:
    """The framework with every route, for one App."""
    return Litestar(
        route_handlers=ROUTERS,
        dependencies=providers(app, gate),
        exception_handlers={Exception: _problem},
        middleware=[_slashed],
        openapi_config=openapi.config(app.version),
        request_class=StrictRequest,
        state=State({"gate": gate}),
        # body.py bounds and times every body before the framework sees it.
        request_max_body_size=None,
        logging_config=None,
        debug=False,
    )


def make(app: App, *, ping_s: float = PING_S, sweep_s: float = SWEEP_S) -> Front:
    """The ASGI application. Its lifespan starts and stops the loop behind the inbox streams."""
    gate = Gate(app)
    inner: Any = framework(app, gate)
    return Front(
        inner,
        hot.routes(app, gate) | openapi.routes(inner),
        gate=gate,
        streams=Streams(app, gate, ping_s=ping_s, sweep_s=sweep_s),
        cors=Cors(app.settings.server.cors_origins),
    )
