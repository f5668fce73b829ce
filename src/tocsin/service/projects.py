"""Projects: the operator makes, changes and deletes them, and gives them keys."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tocsin.domain.channel import CHANNELS, Channel, channel_named
from tocsin.domain.errors import Conflict, Invalid, NotFound
from tocsin.domain.request import Track, Window
from tocsin.service.app import App
from tocsin.service.keys import HINT, hash_key, new_project_key
from tocsin.service.subscribers import Done
from tocsin.service.window import check_window
from tocsin.store import projects
from tocsin.wire.addresses import check_address, check_name

RATE_LIMIT_DEFAULT: Final = 600
RATE_LIMIT_MAX: Final = 10_000_000
GRACE_HOURS_DEFAULT: Final = 24
GRACE_HOURS_MAX: Final = 720
SETTINGS_BYTES_MAX: Final = 64 * 1024
_DEFAULT_CHANNELS: Final[tuple[Channel, ...]] = ("email", "in_app")
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_APPLIES_TO: Final = (None, "marketing", "all")

RateLimit = Annotated[int, Meta(ge=0, le=RATE_LIMIT_MAX)]
Weight = Annotated[int, Meta(ge=1, le=1000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Line = Annotated[str, Meta(max_length=1_000)]
Channels = Annotated[list[Annotated[str, Meta(max_length=32)]], Meta(max_length=16)]


class Tracking(Track, frozen=True):
    """applies_to: `marketing` (default) or `all`."""

    applies_to: Annotated[str, Meta(max_length=32)] | None = None


class ProjectIn(Struct, frozen=True):
    """rate_limit_per_min: requests a minute; 0 blocks every request, null takes the limit away."""

    id: Annotated[str, Meta(min_length=1, max_length=63)]
    name: Name | None = None
    channels: Channels | None = None
    rate_limit_per_min: RateLimit | None = RATE_LIMIT_DEFAULT
    weight: Weight = 1
    settings: dict[str, Any] | None = None
    from_email: Line | None = None
    from_name: Line | None = None


class ProjectPatch(Struct, frozen=True):
    """What is left out stays; an empty from_email and a null of any other optional field clears it."""

    name: Name | UnsetType = UNSET
    channels: Channels | UnsetType = UNSET
    rate_limit_per_min: RateLimit | None | UnsetType = UNSET
    weight: Weight | UnsetType = UNSET
    from_email: Line | None | UnsetType = UNSET
    from_name: Line | None | UnsetType = UNSET
    send_window: Window | None | UnsetType = UNSET
    tracking: bool | Tracking | None | UnsetType = UNSET


class NewKey(Struct, frozen=True):
    id: str
    api_key: str


class ProjectMade(Struct, frozen=True):
    success: bool
    project: NewKey
    warning: str


class ProjectOut(Struct, frozen=True):
    id: str
    name: str
    channels: list[str]
    rate_limit_per_min: int | None
    weight: int
    settings: dict[str, Any]
    from_email: str | None
    from_name: str | None
    created_at: datetime


class ProjectPage(Struct, frozen=True):
    projects: list[ProjectOut]
    total: int
    limit: int
    offset: int


class ProjectChanged(Struct, frozen=True):
    success: bool
    project: ProjectOut


class RotateIn(Struct, frozen=True):
    """grace_hours: how long the key in use goes on working beside the new one; 0 ends it at once."""

    grace_hours: Annotated[int, Meta(ge=0, le=GRACE_HOURS_MAX)] = GRACE_HOURS_DEFAULT


class KeyRotated(Struct, frozen=True):
    success: bool
    new_api_key: str
    previous_key_valid_until: datetime
    note: str
    warning: str


_SHOWN_ONCE: Final = "Store this key now: it is not shown again."


def _not_found() -> NotFound:
    return NotFound(
        "project_not_found",
        "Project not found",
        remedy="list the projects with GET /v1/admin/projects",
    )


def _channels(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for index, name in enumerate(names):
        channel = channel_named(name)
        if channel is None:
            raise Invalid(
                "unknown_channel",
                f"channels[{index}] is not a channel",
                remedy=f"use {', '.join(CHANNELS)}",
                field=f"channels[{index}]",
            )
        if channel not in found:
            found.append(channel)
    return found


def _address(text: str | None) -> str | None:
    return check_address(text.strip(), "from_email") if text and text.strip() else None


def _name(text: str | None) -> str | None:
    return check_name(text.strip(), "from_name") or None if text else None


async def create(app: App, wanted: ProjectIn) -> ProjectMade:
    """Make a project; its key is in the answer and nowhere else."""
    if not _ID.fullmatch(wanted.id):
        raise Invalid(
            "invalid_project_id",
            "id is not a project id",
            remedy="use 1 to 63 of a-z 0-9 _ - and start with a letter or digit",
            field="id",
        )
    settings = msgspec.json.encode(wanted.settings or {})
    if len(settings) > SETTINGS_BYTES_MAX:
        raise Invalid(
            "settings_too_large",
            f"settings is larger than {SETTINGS_BYTES_MAX // 1024} KiB as JSON",
            remedy="keep only settings there",
            field="settings",
        )
    key = new_project_key(wanted.id)
    new = projects.NewProject(
        id=wanted.id,
        name=wanted.name or wanted.id,
        channels=_channels(_DEFAULT_CHANNELS if wanted.channels is None else wanted.channels),
        key_hash=hash_key(key),
        rate_limit_per_min=wanted.rate_limit_per_min,
        weight=wanted.weight,
        settings=settings.decode(),
        from_email=_address(wanted.from_email),
        from_name=_name(wanted.from_name),
    )
    if await projects.insert_project(app.db, new, app.clock.now()) is None:
        raise Conflict(
            "project_exists",
            f"Project '{wanted.id}' already exists",
            remedy="take another id, or POST …/rotate-key for a new key of this one",
            extra={"hint": f"POST /v1/admin/projects/{wanted.id}/rotate-key gives a new key"},
        )
    app.notifier.hint(HINT)
    return ProjectMade(success=True, project=NewKey(wanted.id, key), warning=_SHOWN_ONCE)


def _out(project: projects.Project) -> ProjectOut:
    return ProjectOut(
        id=project.id,
        name=project.name,
        channels=project.channels,
        rate_limit_per_min=project.rate_limit_per_min,
        weight=project.weight,
        settings=msgspec.json.decode(project.settings),
        from_email=project.from_email,
        from_name=project.from_name,
        created_at=project.created_at,
    )


async def page(app: App, *, limit: int, offset: int) -> ProjectPage:
    """Living projects by id."""
    found, total = await projects.list_projects(app.db, limit=limit, offset=offset)
    return ProjectPage([_out(project) for project in found], total, limit, offset)


async def change(app: App, project_id: str, wanted: ProjectPatch) -> ProjectChanged:
    """Change what is given of a project."""
    async with app.db.transaction() as tx:
        project = await projects.lock_project(tx, project_id)
        if project is None:
            raise _not_found()
        changed = await projects.update_project(tx, _patched(project, wanted), app.clock.now())
    if changed is None:
        raise _not_found()
    app.notifier.hint(HINT)
    return ProjectChanged(success=True, project=_out(changed))


def _patched(project: projects.Project, wanted: ProjectPatch) -> projects.Project:
    new: dict[str, Any] = {
        name: value
        for name in ("name", "rate_limit_per_min", "weight")
        if (value := getattr(wanted, name)) is not UNSET
    }
    if wanted.channels is not UNSET:
        new["channels"] = _channels(wanted.channels)
    if wanted.from_email is not UNSET:
        new["from_email"] = _address(wanted.from_email)
    if wanted.from_name is not UNSET:
        new["from_name"] = _name(wanted.from_name)
    settings = msgspec.json.decode(project.settings)
    if isinstance(wanted.send_window, Window):
        check_window(wanted.send_window)
    if isinstance(wanted.tracking, Tracking):
        _check_applies_to(wanted.tracking.applies_to, "tracking.applies_to")
    for name in ("send_window", "tracking"):
        value = getattr(wanted, name)
        if value is None:
            settings.pop(name, None)
        elif value is not UNSET:
            settings[name] = value
    new["settings"] = msgspec.json.encode(settings).decode()
    return msgspec.structs.replace(project, **new)


def _check_applies_to(value: str | None, field: str) -> None:
    if value not in _APPLIES_TO:
        raise Invalid(
            "invalid_applies_to",
            f"{field} must be 'marketing' or 'all'",
            remedy="leave it out for marketing only",
            field=field,
        )


async def rotate_key(app: App, project_id: str, wanted: RotateIn) -> KeyRotated:
    """A new key; the one in use goes on for the grace period, the one before it ends now."""
    now = app.clock.now()
    until = now + timedelta(hours=wanted.grace_hours)
    key = new_project_key(project_id)
    if not await projects.rotate_key(
        app.db, project_id, hash_key(key), previous_until=until, at=now
    ):
        raise _not_found()
    app.notifier.hint(HINT)
    return KeyRotated(
        success=True,
        new_api_key=key,
        previous_key_valid_until=until,
        note="The previous key works until previous_key_valid_until; "
        "POST …/revoke-secondary ends it at once.",
        warning=_SHOWN_ONCE,
    )


async def revoke_previous_key(app: App, project_id: str) -> Done:
    """End the previous key now; harmless when there is none."""
    if not await projects.revoke_previous(app.db, project_id, app.clock.now()):
        raise _not_found()
    app.notifier.hint(HINT)
    return Done(success=True)


async def delete(app: App, project_id: str) -> Done:
    """Mark a project deleted: its keys and tokens stop working, its id is free again."""
    if not await projects.delete_project(app.db, project_id, app.clock.now()):
        raise _not_found()
    app.notifier.hint(HINT)
    return Done(success=True)
