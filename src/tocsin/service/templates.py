"""Templates of a project: one variant for each channel under one id."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from tocsin.domain.channel import CHANNELS, Channel, channel_named
from tocsin.domain.errors import Invalid, NotFound
from tocsin.service.app import App
from tocsin.service.preferences import topic_named
from tocsin.service.principal import ProjectKey
from tocsin.store import templates
from tocsin.wire.addresses import check_line

BODY_MAX: Final = 1_000_000


class TemplateIn(Struct, frozen=True):
    """Replaces the variant of this id and channel, if there is one."""

    id: Annotated[str, Meta(min_length=1, max_length=256)]
    channel: Annotated[str, Meta(min_length=1, max_length=32)]
    body: Annotated[str, Meta(max_length=BODY_MAX)]
    subject: Annotated[str, Meta(max_length=10_000)] | None = None
    body_html: Annotated[str, Meta(max_length=BODY_MAX)] | None = None
    topic: Annotated[str, Meta(max_length=1_000)] | None = None


class TemplateSaved(Struct, frozen=True):
    success: bool
    id: str
    channel: str


class TemplateOut(Struct, frozen=True):
    id: str
    channel: str
    subject: str | None
    body: str
    body_html: str | None
    topic: str | None


class TemplatePage(Struct, frozen=True):
    items: list[TemplateOut]
    total: int
    limit: int
    offset: int


class TemplateVariants(Struct, frozen=True):
    template_id: str
    variants: list[TemplateOut]


class TemplateDeleted(Struct, frozen=True):
    success: bool
    deleted: int


def _channel(name: str, field: str = "channel") -> Channel:
    channel = channel_named(name)
    if channel is None:
        raise Invalid(
            "unknown_channel",
            f"{field} is not a channel",
            remedy=f"use one of {', '.join(CHANNELS)}",
            field=field,
        )
    return channel


def _not_found() -> NotFound:
    return NotFound(
        "template_not_found",
        "Template not found",
        remedy="list the templates with GET /v1/templates",
    )


async def save(app: App, who: ProjectKey, wanted: TemplateIn) -> TemplateSaved:
    """Store one variant."""
    channel = _channel(wanted.channel)
    now = app.clock.now()
    subject = None if wanted.subject is None else check_line(wanted.subject, "subject")
    topic = topic_named(wanted.topic, "topic") if wanted.topic else None
    template = templates.Template(
        wanted.id, channel, subject, wanted.body, wanted.body_html, topic, now, now
    )
    await templates.upsert(app.db, who.number, template)
    return TemplateSaved(success=True, id=wanted.id, channel=channel)


def _out(template: templates.Template) -> TemplateOut:
    return TemplateOut(
        template.id,
        template.channel,
        template.subject,
        template.body,
        template.body_html,
        template.topic,
    )


async def page(
    app: App, who: ProjectKey, *, channel: str | None, limit: int, offset: int
) -> TemplatePage:
    """Variants by id and channel; of one channel if asked."""
    chosen = _channel(channel) if channel else None
    found, total = await templates.page(
        app.db, who.number, channel=chosen, limit=limit, offset=offset
    )
    return TemplatePage([_out(t) for t in found], total, limit, offset)


async def read(app: App, who: ProjectKey, template_id: str) -> TemplateVariants:
    """All variants of one id."""
    found = await templates.variants(app.db, who.number, template_id)
    if not found:
        raise _not_found()
    return TemplateVariants(template_id, [_out(t) for t in found])


async def delete(app: App, who: ProjectKey, template_id: str) -> TemplateDeleted:
    """Delete all variants of one id."""
    deleted = await templates.delete(app.db, who.number, template_id)
    if not deleted:
        raise _not_found()
    return TemplateDeleted(success=True, deleted=deleted)
