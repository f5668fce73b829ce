"""Stream tickets: used once, within a minute, by a browser that cannot send a header."""

from datetime import datetime

from msgspec import Struct

from tocsin.store.pool import Connection, Query

INSERT_TICKET = Query(
    "ticket_insert",
    """
    WITH old AS (
        DELETE FROM stream_tickets WHERE ticket_hash IN (
            SELECT ticket_hash FROM stream_tickets
             WHERE project = $2 AND subscriber_id = $3 AND expires_at <= $6 LIMIT 10
               FOR UPDATE SKIP LOCKED)
    )
    INSERT INTO stream_tickets (ticket_hash, project, subscriber_id, expires_at, stream_until)
    VALUES ($1, $2, $3, $4, $5)
    """,
)


class Ticket(Struct, frozen=True):
    """Whose inbox it opens. expires_at: of the ticket; stream_until: of a stream opened with it."""

    project: int
    subscriber_id: str
    expires_at: datetime
    stream_until: datetime


async def insert_ticket(db: Connection, ticket_hash: bytes, ticket: Ticket, at: datetime) -> None:
    """Store a ticket's hash (SHA-256); a few of the person's expired ones go with it."""
    await db.execute(
        INSERT_TICKET,
        ticket_hash,
        ticket.project,
        ticket.subscriber_id,
        ticket.expires_at,
        ticket.stream_until,
        at,
    )


TAKE_TICKET = Query(
    "ticket_take",
    """
    DELETE FROM stream_tickets WHERE ticket_hash = $1
    RETURNING project, subscriber_id, expires_at, stream_until
    """,
)


async def take_ticket(db: Connection, ticket_hash: bytes, at: datetime) -> Ticket | None:
    """Use up a ticket; None when it is unknown, used or expired."""
    row = await db.row(TAKE_TICKET, ticket_hash)
    ticket = None if row is None else Ticket(*row)
    return None if ticket is None or ticket.expires_at <= at else ticket
