"""/v1/templates: what messages say, one variant for each channel."""

from typing import Annotated

from litestar import Router, delete, get, post
from litestar.params import JSONBody, QueryParameter

from tocsin.faces.http.given import PROJECT_KEY, Given, Offset, PathId, Project
from tocsin.service import templates

Limit = Annotated[int, QueryParameter(ge=1, le=200)]
ChannelName = Annotated[str | None, QueryParameter(name="channel", max_length=32)]


@post(status_code=200)
async def save_template(
    app: Given, who: Project, data: JSONBody[templates.TemplateIn]
) -> templates.TemplateSaved:
    """Store the variant of one channel, in place of the one it had."""
    return await templates.save(app, who, data)


@get()
async def list_templates(
    app: Given, who: Project, limit: Limit = 50, offset: Offset = 0, channel: ChannelName = None
) -> templates.TemplatePage:
    """Variants by id and channel."""
    return await templates.page(app, who, channel=channel, limit=limit, offset=offset)


@get("/{template_id:str}")
async def read_template(
    app: Given, who: Project, template_id: PathId
) -> templates.TemplateVariants:
    """All variants of one template."""
    return await templates.read(app, who, template_id)


@delete("/{template_id:str}", status_code=200)
async def delete_template(
    app: Given, who: Project, template_id: PathId
) -> templates.TemplateDeleted:
    """Delete all variants of one template."""
    return await templates.delete(app, who, template_id)


router = Router(
    "/v1/templates",
    route_handlers=[save_template, list_templates, read_template, delete_template],
    security=PROJECT_KEY,
    tags=["Templates"],
)
