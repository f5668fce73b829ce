"""/v1/admin/projects: what the operator does with projects and their keys."""

from typing import Annotated

from litestar import Router, delete, get, patch, post
from litestar.params import JSONBody, QueryParameter

from tocsin.faces.http.given import (
    OPERATOR_KEY,
    Given,
    Offset,
    PathId,
    operator_reads,
    operator_writes,
)
from tocsin.service import projects
from tocsin.service.subscribers import Done

Limit = Annotated[int, QueryParameter(ge=1, le=1000)]


@post(status_code=200, guards=[operator_writes])
async def create_project(app: Given, data: JSONBody[projects.ProjectIn]) -> projects.ProjectMade:
    """Make a project; its key is shown this one time."""
    return await projects.create(app, data)


@get(guards=[operator_reads])
async def list_projects(app: Given, limit: Limit = 200, offset: Offset = 0) -> projects.ProjectPage:
    """Projects by id."""
    return await projects.page(app, limit=limit, offset=offset)


@patch("/{project_id:str}", guards=[operator_writes])
async def change_project(
    app: Given, project_id: PathId, data: JSONBody[projects.ProjectPatch]
) -> projects.ProjectChanged:
    """Change what is given."""
    return await projects.change(app, project_id, data)


@post("/{project_id:str}/rotate-key", status_code=200, guards=[operator_writes])
async def rotate_key(
    app: Given, project_id: PathId, data: JSONBody[projects.RotateIn | None] = None
) -> projects.KeyRotated:
    """A new key; the one in use goes on for `grace_hours`."""
    return await projects.rotate_key(app, project_id, data or projects.RotateIn())


@post("/{project_id:str}/revoke-secondary", status_code=200, guards=[operator_writes])
async def revoke_secondary(app: Given, project_id: PathId) -> Done:
    """End the previous key now."""
    return await projects.revoke_previous_key(app, project_id)


@delete("/{project_id:str}", status_code=200, guards=[operator_writes])
async def delete_project(app: Given, project_id: PathId) -> Done:
    """Delete a project: its keys and tokens stop working at once."""
    return await projects.delete(app, project_id)


router = Router(
    "/v1/admin/projects",
    route_handlers=[
        create_project,
        list_projects,
        change_project,
        rotate_key,
        revoke_secondary,
        delete_project,
    ],
    security=OPERATOR_KEY,
    tags=["Projects"],
)
