"""/v1/inbox: one person's messages, for their own token or their project's key."""

from typing import Annotated

from litestar import Router, get, patch, post
from litestar.params import FromQuery, JSONBody, QueryParameter

from tocsin.faces.http.given import INBOX_KEY, Access, Given, Offset, PathId, Words, id_of
from tocsin.service import inbox
from tocsin.service.subscribers import Done

Limit = Annotated[int, QueryParameter(ge=1, le=100)]


@get("/{subscriber_id:str}")
async def list_inbox(
    app: Given,
    access: Access,
    subscriber_id: PathId,
    limit: Limit = 20,
    offset: Offset = 0,
    filter: FromQuery[inbox.Filter] = "all",  # noqa: A002 - the name in the address
    q: Words = None,
) -> inbox.InboxPage:
    """The newest messages; `filter` and `q` apply before the limit, `total` counts what matches."""
    return await inbox.page(
        app, access.project, subscriber_id, chosen=filter, q=q, limit=limit, offset=offset
    )


@get("/{subscriber_id:str}/unread-count")
async def count_unread(app: Given, access: Access, subscriber_id: PathId) -> inbox.UnreadCount:
    """How many messages are neither read nor archived."""
    return await inbox.unread(app, access.project, subscriber_id)


@patch("/{subscriber_id:str}/{message_id:str}")
async def mark_message(
    app: Given,
    access: Access,
    subscriber_id: PathId,
    message_id: PathId,
    data: JSONBody[inbox.InboxPatch],
) -> Done:
    """Mark one message read, archived or to do, or take that back."""
    found = id_of(message_id, "message_not_found", "Message")
    return await inbox.patch(app, access.project, subscriber_id, found, data)


@post("/{subscriber_id:str}/read-all", status_code=200)
async def mark_all(app: Given, access: Access, subscriber_id: PathId) -> inbox.ReadAll:
    """Mark every message read that is there now."""
    return await inbox.read_all(app, access.project, subscriber_id)


@post("/{subscriber_id:str}/stream-ticket", status_code=200)
async def draw_ticket(app: Given, access: Access, subscriber_id: PathId) -> inbox.TicketAnswer:
    """A ticket that opens one stream, once, within a minute."""
    return await inbox.draw_ticket(app, access.project, subscriber_id, until=access.until)


router = Router(
    "/v1/inbox",
    route_handlers=[list_inbox, count_unread, mark_message, mark_all, draw_ticket],
    security=INBOX_KEY,
    tags=["Inbox"],
)
