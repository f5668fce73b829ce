"""/v1/health, /v1/channels and /v1/auth: the service itself, and tokens for browsers."""

from typing import Any

from litestar import Response, Router, get, post
from litestar.params import JSONBody

from tocsin.faces.http.given import PROJECT_KEY, Given, Health, Project
from tocsin.faces.http.openapi import answers
from tocsin.service import health, tokens


@get("/health", responses=answers(health.Health, (200, 503)), tags=["Service"])
async def read_health(probe: Health) -> Response[Any]:
    """200 while the database answers and a worker makes progress, else 503."""
    state = await probe.check()
    return Response(state, status_code=200 if state.status == "ok" else 503)


@get("/channels", security=PROJECT_KEY, tags=["Service"])
async def read_channels(app: Given, who: Project) -> health.ChannelsAnswer:
    """Every channel: listed by the project, and set up."""
    return health.channels(app, who)


@post("/auth/subscriber-token", status_code=200, security=PROJECT_KEY, tags=["Inbox"])
async def issue_token(
    app: Given, who: Project, data: JSONBody[tokens.TokenRequest]
) -> tokens.TokenAnswer:
    """A token that opens one subscriber's inbox, for a browser."""
    return tokens.issue(app, who, data)


router = Router("/v1", route_handlers=[read_health, read_channels, issue_token])
