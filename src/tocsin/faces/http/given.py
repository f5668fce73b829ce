"""Given: what handlers ask for by name, and how their bodies are read."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency, Provide
from litestar.handlers import BaseRouteHandler
from litestar.openapi.spec import SecurityRequirement
from litestar.params import PathParameter, QueryParameter, SkipValidation

from tocsin.domain.errors import NotFound
from tocsin.faces.http.body import decode
from tocsin.faces.http.identity import Gate, InboxAccess
from tocsin.service.app import App
from tocsin.service.health import Probe
from tocsin.service.principal import ProjectKey

Given = NamedDependency[SkipValidation[App]]
Project = NamedDependency[SkipValidation[ProjectKey]]
Access = NamedDependency[SkipValidation[InboxAccess]]
Health = NamedDependency[SkipValidation[Probe]]

OFFSET_MAX: Final = 1_000_000
WORDS_MAX: Final = 200

Offset = Annotated[int, QueryParameter(ge=0, le=OFFSET_MAX, description="How many to skip.")]
Words = Annotated[
    str | None, QueryParameter(max_length=WORDS_MAX, description="Words to look for.")
]
PathId = Annotated[str, PathParameter(min_length=1, max_length=256)]
PathToken = Annotated[str, PathParameter(min_length=1, max_length=4096)]

PROJECT_KEY: Final[list[SecurityRequirement]] = [{"projectKey": []}, {"bearer": []}]
INBOX_KEY: Final[list[SecurityRequirement]] = [{"bearer": []}, {"projectKey": []}]
OPERATOR_KEY: Final[list[SecurityRequirement]] = [{"operatorKey": []}, {"bearer": []}]

Asked = Request[Any, Any, Any]
Connection = ASGIConnection[Any, Any, Any, Any]


class StrictRequest(Request[Any, Any, Any]):
    """Reads bodies as the hot routes do: straight into the handler's type, nothing coerced."""

    async def json(self) -> Any:
        wanted = self.route_handler.parsed_data_field
        body = await self.body()
        return decode(msgspec.json.Decoder(wanted.annotation if wanted else Any), body)


def providers(app: App, gate: Gate) -> dict[str, Provide]:
    """What every handler may ask for."""
    probe = Probe(app)
    return {
        "app": Provide(lambda: app, sync_to_thread=False),
        "probe": Provide(lambda: probe, sync_to_thread=False),
        "who": Provide(_project(gate)),
        "access": Provide(_access(gate)),
    }


def _project(gate: Gate) -> Callable[[Asked], Awaitable[ProjectKey]]:
    async def project(request: Asked) -> ProjectKey:
        return await gate.project(dict(request.scope["headers"]))

    return project


def _access(gate: Gate) -> Callable[[Asked, str], Awaitable[InboxAccess]]:
    async def access(request: Asked, subscriber_id: PathId) -> InboxAccess:
        return await gate.inbox(dict(request.scope["headers"]), subscriber_id)

    return access


async def operator_reads(connection: Connection, _: BaseRouteHandler) -> None:
    """Guard: any operator key."""
    headers = dict(connection.scope["headers"])
    await connection.app.state.gate.operator(headers, writes=False)


async def operator_writes(connection: Connection, _: BaseRouteHandler) -> None:
    """Guard: the operator key that may change things."""
    headers = dict(connection.scope["headers"])
    await connection.app.state.gate.operator(headers, writes=True)


def id_of(text: str, code: str, what: str) -> UUID:
    """A path's id; one that is no UUID names nothing, as an unknown one."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(code, f"{what} not found", remedy="check the id") from None
