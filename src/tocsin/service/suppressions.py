"""Suppressions of a project: email addresses that get nothing, or no marketing."""

from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

from msgspec import Meta, Struct

from tocsin.domain.errors import Malformed, NotFound
from tocsin.domain.ids import uuid7
from tocsin.service.app import App
from tocsin.service.principal import ProjectKey
from tocsin.store import suppressions
from tocsin.wire.addresses import check_address

SCOPES: Final = ("all", "marketing")
#: notifyd's words for why: by hand, or as if the person had unsubscribed.
_REASONS: Final = {"all": "manual", "marketing": "unsubscribe"}


class SuppressionIn(Struct, frozen=True):
    email: Annotated[str, Meta(max_length=1_000)]
    detail: Annotated[str, Meta(max_length=1_000)] | None = None
    scope: Annotated[str, Meta(max_length=32)] = "all"


class SuppressionOut(Struct, frozen=True):
    id: UUID
    email: str
    reason: str
    scope: str
    detail: str | None
    created_at: datetime
    released_at: datetime | None


class SuppressionPage(Struct, frozen=True):
    data: list[SuppressionOut]
    total: int
    limit: int
    offset: int


class SuppressionMade(Struct, frozen=True):
    """`email` is masked."""

    id: UUID
    project_id: str
    email: str
    reason: str
    scope: str


class SuppressionSaved(Struct, frozen=True):
    success: bool
    suppression: SuppressionMade


class SuppressionReleased(Struct, frozen=True):
    success: bool
    id: UUID


def masked(email: str) -> str:
    """An address as a log or a page may show it: first character and domain."""
    local, _, domain = email.rpartition("@")
    return f"{local[:1]}***@{domain}" if domain else "***"


async def page(
    app: App, who: ProjectKey, *, released: bool, limit: int, offset: int
) -> SuppressionPage:
    """The newest email suppressions; with `released` those no longer in force too."""
    found, total = await suppressions.page(
        app.db, who.number, "email", released=released, limit=limit, offset=offset
    )
    items = [
        SuppressionOut(s.id, s.address, s.reason, s.scope, s.detail, s.created_at, s.released_at)
        for s in found
    ]
    return SuppressionPage(items, total, limit, offset)


async def add(app: App, who: ProjectKey, wanted: SuppressionIn) -> SuppressionSaved:
    """Suppress an address; repeating it answers the row in force."""
    if wanted.scope not in SCOPES:
        raise Malformed(
            "invalid_scope",
            "scope must be 'all' or 'marketing'",
            remedy="leave scope out to suppress everything",
            field="scope",
        )
    made = await suppress(
        app,
        who.number,
        check_address(wanted.email.strip(), "email"),
        scope=wanted.scope,
        reason=_REASONS[wanted.scope],
        detail=wanted.detail,
    )
    return SuppressionSaved(
        success=True,
        suppression=SuppressionMade(made.id, who.id, masked(made.address), made.reason, made.scope),
    )


async def suppress(
    app: App, project: int, email: str, *, scope: str, reason: str, detail: str | None = None
) -> suppressions.Suppression:
    """Put a checked address under suppression; the row in force."""
    now = app.clock.now()
    return await suppressions.upsert(
        app.db,
        project,
        suppressions.Suppression(
            uuid7(now), "email", email, scope, reason, detail, now, released_at=None
        ),
    )


async def release(app: App, who: ProjectKey, suppression_id: UUID) -> SuppressionReleased:
    """Let an address receive again."""
    if not await suppressions.release(
        app.db, who.number, suppression_id, released_by="api", at=app.clock.now()
    ):
        raise NotFound(
            "suppression_not_found",
            "Suppression not found",
            remedy="list those in force with GET /v1/suppressions",
        )
    return SuppressionReleased(success=True, id=suppression_id)
