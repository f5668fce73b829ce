"""Subscribers of a project: store, find, read and forget people."""

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from tocsin.domain.errors import Invalid, NotFound
from tocsin.domain.request import SubscriberIn
from tocsin.service.app import App
from tocsin.service.principal import ProjectKey
from tocsin.service.window import is_zone
from tocsin.store import erasures, inbox, subscribers
from tocsin.store.inbox_changes import hint_of
from tocsin.store.pattern import containing
from tocsin.wire.addresses import check_address, check_line
from tocsin.wire.phones import check_phone

DATA_BYTES_MAX: Final = 256 * 1024
_COLUMNS: Final = (
    "email", "phone", "first_name", "last_name", "locale", "timezone", "data",
)  # fmt: skip


class SubscriberSaved(Struct, frozen=True):
    success: bool
    id: str
    project_id: str
    created: bool


class SubscriberOut(Struct, frozen=True):
    id: str
    project_id: str
    email: str | None
    phone: str | None
    first_name: str | None
    last_name: str | None
    locale: str | None
    timezone: str | None
    data: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class SubscriberPage(Struct, frozen=True):
    items: list[SubscriberOut]
    total: int
    limit: int
    offset: int


class Done(Struct, frozen=True):
    success: bool


def _not_found() -> NotFound:
    return NotFound(
        "subscriber_not_found",
        "Subscriber not found",
        remedy="list the subscribers with GET /v1/subscribers",
    )


def _zone(name: str) -> str:
    if not is_zone(name):
        raise Invalid(
            "unknown_timezone",
            "timezone is not an IANA time zone",
            remedy="use a name such as Europe/Paris",
            field="timezone",
        )
    return name


def _text(wanted: SubscriberIn, column: str) -> str | None:
    value = getattr(wanted, column)
    if value is UNSET or value is None or not value.strip():
        return None
    match column:
        case "email":
            return check_address(value.strip(), column)
        case "phone":
            return check_phone(value, column)
        case "timezone":
            return _zone(value.strip())
        case _:
            return check_line(value.strip(), column)


def _data(wanted: SubscriberIn) -> str | None:
    if wanted.data is UNSET or wanted.data is None:
        return None
    text = msgspec.json.encode(wanted.data)
    if len(text) > DATA_BYTES_MAX:
        raise Invalid(
            "data_too_large",
            f"data is larger than {DATA_BYTES_MAX // 1024} KiB as JSON",
            remedy="keep only what templates need",
            field="data",
        )
    return text.decode()


async def upsert(app: App, who: ProjectKey, wanted: SubscriberIn) -> SubscriberSaved:
    """Store a person, or change what is given of one already there."""
    check_line(wanted.id, "id")
    now = app.clock.now()
    data = _data(wanted)
    person = subscribers.Subscriber(
        id=wanted.id,
        email=_text(wanted, "email"),
        phone=_text(wanted, "phone"),
        first_name=_text(wanted, "first_name"),
        last_name=_text(wanted, "last_name"),
        locale=_text(wanted, "locale"),
        timezone=_text(wanted, "timezone"),
        data=data or "{}",
        created_at=now,
        updated_at=now,
    )
    given = [column for column in _COLUMNS if getattr(wanted, column) is not UNSET]
    created = await subscribers.upsert(app.db, who.number, person, given=given, data=data, at=now)
    return SubscriberSaved(success=True, id=wanted.id, project_id=who.id, created=created)


def _out(who: ProjectKey, person: subscribers.Subscriber) -> SubscriberOut:
    return SubscriberOut(
        id=person.id,
        project_id=who.id,
        email=person.email,
        phone=person.phone,
        first_name=person.first_name,
        last_name=person.last_name,
        locale=person.locale,
        timezone=person.timezone,
        data=msgspec.json.decode(person.data),
        created_at=person.created_at,
        updated_at=person.updated_at,
    )


async def page(
    app: App, who: ProjectKey, *, q: str | None, limit: int, offset: int
) -> SubscriberPage:
    """People by id; `q` is looked for in id, email and names."""
    found, total = await subscribers.page(
        app.db, who.number, pattern=containing(q), limit=limit, offset=offset
    )
    return SubscriberPage([_out(who, person) for person in found], total, limit, offset)


async def read(app: App, who: ProjectKey, subscriber_id: str) -> SubscriberOut:
    """One person."""
    person = await subscribers.read(app.db, who.number, subscriber_id)
    if person is None:
        raise _not_found()
    return _out(who, person)


async def delete(app: App, who: ProjectKey, subscriber_id: str) -> Done:
    """Forget a person: their row, preferences, inbox and stream tickets, in one commit.

    What was enqueued for them is not sent any more, and their tokens open nothing.
    """
    async with app.db.transaction() as tx:
        if not await subscribers.delete(tx, who.number, subscriber_id):
            raise _not_found()
        await inbox.delete_inbox(tx, who.number, subscriber_id)
        await erasures.record(tx, who.number, subscriber_id, app.clock.now())
    app.notifier.hint(hint_of(who.number, subscriber_id))
    return Done(success=True)
