"""Stream tickets: used once, within a minute, by a browser that cannot send a header."""

from datetime import datetime

from tocsin.store.pool import Connection, Query

INSERT_TICKET = Query(
    "ticket_insert",
    """
    WITH old AS (
        DELETE FROM stream_tickets WHERE ticket_hash IN (
            SELECT ticket_hash FROM stream_tickets
             WHERE project = $2 AND subscriber_id = $3 AND expires_at <= $5 LIMIT 10
               FOR UPDATE SKIP LOCKED)
    )
    INSERT INTO stream_tickets (ticket_hash, project, subscriber_id, expires_at)
    VALUES ($1, $2, $3, $4)
    """,
)


async def insert_ticket(
    db: Connection,
    *,
    ticket_hash: bytes,
    project: int,
    subscriber_id: str,
    expires_at: datetime,
    at: datetime,
) -> None:
    """Store a ticket's hash (SHA-256); a few of the person's expired ones go with it."""
    await db.execute(INSERT_TICKET, ticket_hash, project, subscriber_id, expires_at, at)


TAKE_TICKET = Query(
    "ticket_take",
    """
    DELETE FROM stream_tickets WHERE ticket_hash = $1
    RETURNING project, subscriber_id, expires_at > $2 AS valid
    """,
)


async def take_ticket(db: Connection, ticket_hash: bytes, at: datetime) -> tuple[int, str] | None:
    """Use up a ticket: (project, subscriber id), or None when unknown, used or expired."""
    row = await db.row(TAKE_TICKET, ticket_hash, at)
    return None if row is None or not row["valid"] else (row["project"], row["subscriber_id"])


FORGET_TICKETS = Query("tickets_forget", "DELETE FROM stream_tickets WHERE expires_at <= $1")


async def forget_tickets(db: Connection, at: datetime) -> int:
    """Delete every ticket that expired unused; how many."""
    return await db.execute(FORGET_TICKETS, at)
