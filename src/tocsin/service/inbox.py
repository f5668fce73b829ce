"""Inbox of a subscriber: list, mark, count, and the tickets that open its stream."""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tocsin.domain.errors import NotFound
from tocsin.service.app import App
from tocsin.service.principal import ProjectKey
from tocsin.service.subscribers import Done
from tocsin.store import inbox, tickets
from tocsin.store.inbox import State
from tocsin.store.inbox_changes import hint_of
from tocsin.store.pattern import containing

TICKET_LASTS: Final = timedelta(seconds=60)
#: A stream that was opened with a project's key, or with a ticket drawn with it, ends after this.
STREAM_LASTS: Final = timedelta(hours=24)

Filter = Literal["all", "unread", "todo"]
Kind = Literal["read", "unread", "archived", "unarchived", "todo"]


class InboxItem(Struct, frozen=True):
    id: UUID
    subject: str | None
    body: str
    icon: str
    url: str | None
    data: dict[str, Any]
    is_read: bool
    read_at: datetime | None
    is_todo: bool
    created_at: datetime


class InboxPage(Struct, frozen=True):
    """`total`: of all that match; `unread_count` is the whole inbox's, as of `version`."""

    items: list[InboxItem]
    total: int
    limit: int
    offset: int
    unread_count: int
    version: int


class UnreadCount(Struct, frozen=True):
    unread_count: int
    version: int


class InboxPatch(Struct, frozen=True):
    """What is left out stays as it is."""

    read: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    is_todo: bool | UnsetType = UNSET


class ReadAll(Struct, frozen=True):
    success: bool
    updated: int


class TicketAnswer(Struct, frozen=True):
    ticket: str
    expires_in_seconds: int


async def page(
    app: App,
    who: ProjectKey,
    subscriber_id: str,
    *,
    chosen: Filter,
    q: str | None,
    limit: int,
    offset: int,
) -> InboxPage:
    """The newest messages that are not archived; filter and words apply before the limit."""
    rows = await inbox.messages(
        app.db,
        who.number,
        subscriber_id,
        chosen=chosen,
        pattern=containing(q),
        limit=limit,
        offset=offset,
    )
    items = [
        InboxItem(
            id=row["id"],
            subject=row["subject"],
            body=row["body"],
            icon=row["icon"],
            url=row["url"],
            data=msgspec.json.decode(row["data"]),
            is_read=row["read_at"] is not None,
            read_at=row["read_at"],
            is_todo=row["is_todo"],
            created_at=row["created_at"],
        )
        for row in rows
        if row["id"] is not None
    ]
    first = rows[0]
    return InboxPage(items, first["total"], limit, offset, first["unread"], first["version"])


async def unread(app: App, who: ProjectKey, subscriber_id: str) -> UnreadCount:
    """How many messages are neither read nor archived."""
    version, count = await inbox.unread(app.db, who.number, subscriber_id)
    return UnreadCount(count, version)


def _counts(state: State) -> int:
    return int(state.read_at is None and state.archived_at is None)


def patched(state: State, wanted: InboxPatch, now: datetime) -> tuple[State, list[Kind]]:
    """The state a patch leads to, and what changed on the way; nothing when it was so already."""
    kinds: list[Kind] = []
    read_at, archived_at, is_todo = state.read_at, state.archived_at, state.is_todo
    if wanted.read is not UNSET and wanted.read != (read_at is not None):
        read_at = now if wanted.read else None
        kinds.append("read" if wanted.read else "unread")
    if wanted.archived is not UNSET and wanted.archived != (archived_at is not None):
        archived_at = now if wanted.archived else None
        kinds.append("archived" if wanted.archived else "unarchived")
    if wanted.is_todo is not UNSET and wanted.is_todo != is_todo:
        is_todo = wanted.is_todo
        kinds.append("todo")
    after = State(state.version + len(kinds), state.unread, read_at, archived_at, is_todo)
    unread_after = state.unread - _counts(state) + _counts(after)
    return msgspec.structs.replace(after, unread=unread_after), kinds


async def patch(
    app: App, who: ProjectKey, subscriber_id: str, message_id: UUID, wanted: InboxPatch
) -> Done:
    """Mark one message."""
    async with app.db.transaction() as tx:
        state = await inbox.lock_message(tx, who.number, subscriber_id, message_id)
        if state is None:
            raise NotFound(
                "message_not_found",
                "Message not found",
                remedy="list the inbox with GET /v1/inbox/{subscriber_id}",
            )
        now = app.clock.now()
        after, kinds = patched(state, wanted, now)
        if kinds:
            await inbox.write_message(
                tx, who.number, subscriber_id, message_id, after=after, kinds=kinds, at=now
            )
    if kinds:
        app.notifier.hint(hint_of(who.number, subscriber_id))
    return Done(success=True)


async def read_all(app: App, who: ProjectKey, subscriber_id: str) -> ReadAll:
    """Mark every message read that is there when the inbox is locked; later ones stay unread."""
    async with app.db.transaction() as tx:
        updated = await inbox.read_all(tx, who.number, subscriber_id, app.clock.now())
    if updated:
        app.notifier.hint(hint_of(who.number, subscriber_id))
    return ReadAll(success=True, updated=updated)


def _hash(ticket: str) -> bytes:
    return hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).digest()


async def draw_ticket(
    app: App, who: ProjectKey, subscriber_id: str, *, until: datetime | None
) -> TicketAnswer:
    """A ticket for one stream. until: when the asker's own token ends, None for a project key."""
    now = app.clock.now()
    ticket = secrets.token_urlsafe(24)
    stored = tickets.Ticket(
        who.number, subscriber_id, now + TICKET_LASTS, until or now + STREAM_LASTS
    )
    await tickets.insert_ticket(app.db, _hash(ticket), stored, now)
    return TicketAnswer(ticket, int(TICKET_LASTS.total_seconds()))


async def take_ticket(app: App, ticket: str) -> tickets.Ticket | None:
    """Use a ticket up; None when it is unknown, used or expired."""
    return await tickets.take_ticket(app.db, _hash(ticket), app.clock.now())
