"""/v1/suppressions: email addresses that get nothing, or no marketing."""

from typing import Annotated

from litestar import Router, delete, get, post
from litestar.params import JSONBody, QueryParameter

from tocsin.faces.http.given import PROJECT_KEY, Given, Offset, PathId, Project, id_of
from tocsin.service import suppressions

Released = Annotated[bool, QueryParameter(description="Also those no longer in force.")]
Limit = Annotated[int, QueryParameter(ge=1, le=500)]


@get()
async def list_suppressions(
    app: Given,
    who: Project,
    *,
    include_released: Released = False,
    limit: Limit = 200,
    offset: Offset = 0,
) -> suppressions.SuppressionPage:
    """The newest suppressions in force, or all with `include_released`."""
    return await suppressions.page(app, who, released=include_released, limit=limit, offset=offset)


@post(status_code=200)
async def add_suppression(
    app: Given, who: Project, data: JSONBody[suppressions.SuppressionIn]
) -> suppressions.SuppressionSaved:
    """Suppress an address; repeating it is harmless."""
    return await suppressions.add(app, who, data)


@delete("/{suppression_id:str}", status_code=200)
async def release_suppression(
    app: Given, who: Project, suppression_id: PathId
) -> suppressions.SuppressionReleased:
    """Let an address receive again."""
    found = id_of(suppression_id, "suppression_not_found", "Suppression")
    return await suppressions.release(app, who, found)


router = Router(
    "/v1/suppressions",
    route_handlers=[list_suppressions, add_suppression, release_suppression],
    security=PROJECT_KEY,
    tags=["Suppressions"],
)
