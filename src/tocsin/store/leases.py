"""Leases: renewed while their worker lives, frozen before the first byte, returned or reaped after."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from tocsin.store.pool import Connection
from tocsin.store.query import Query
from tocsin.store.queue import Lease

#: The worker of a parked lease.
NOBODY = UUID(int=0)


class FrozenCall(Struct, frozen=True):
    """One provider call that may have left: its key, its jobs, its bytes."""

    key: str
    job_ids: list[UUID]
    body: bytes


class DeadLease(Struct, frozen=True):
    """A lease whose time ran out, locked by the transaction that reads it."""

    lease: Lease
    worker: UUID

    @property
    def parked(self) -> bool:
        """Put aside in good order, to repeat its frozen calls; otherwise its worker died."""
        return self.worker == NOBODY


RENEW = Query(
    "renew_leases",
    """
UPDATE leases SET expires_at = $3
 WHERE id = ANY ($1::bigint[]) AND worker = $2 AND expires_at > $4 RETURNING id
""",
)
FREEZE = Query(
    "freeze_calls",
    """
INSERT INTO calls (lease, key, job_ids, body)
SELECT l.id, $3, $4, $5 FROM leases l WHERE l.id = $1 AND l.worker = $2 FOR SHARE
ON CONFLICT (lease, key) DO NOTHING
""",
)
# A parked lease belongs to nobody until its time comes; then whoever serves the lane adopts it.
PARK = Query(
    "park_lease",
    """
UPDATE leases
   SET worker = '00000000-0000-0000-0000-000000000000', expires_at = $3,
       tries = ARRAY(SELECT (t + $4::int)::smallint FROM unnest(tries) t)
 WHERE id = $1 AND worker = $2
""",
)
DEAD = Query(
    "dead_leases",
    """
SELECT id, lane, classes, tags, job_ids, attempts, tries, worker FROM leases
 WHERE expires_at <= $1 AND lane = ANY ($2::int[]) ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED
""",
)
CALLS_OF = Query(
    "calls_of_lease", "SELECT key, job_ids, body FROM calls WHERE lease = $1 ORDER BY key"
)
REPORTED = Query(
    "reported",
    """
SELECT w.job_id FROM unnest($1::uuid[], $2::smallint[]) AS w(job_id, attempt)
  JOIN outcomes o ON o.job_id = w.job_id AND o.attempt = w.attempt
""",
)
# A lease that goes on lists only what it still holds: a job given back and claimed elsewhere must never be
# given back a second time from here.
SHRINK = Query(
    "shrink_lease",
    """
UPDATE leases l
   SET (classes, tags, job_ids, attempts, tries) = (
       SELECT array_agg(class), array_agg(tag), array_agg(job_id), array_agg(attempt), array_agg(used)
         FROM unnest(l.classes, l.tags, l.job_ids, l.attempts, l.tries)
              AS t(class, tag, job_id, attempt, used)
        WHERE job_id <> ALL ($2::uuid[]))
 WHERE id = $1
""",
)
ADOPT = Query(
    "adopt_lease", "UPDATE leases SET worker = $2, claimed_at = $3, expires_at = $4 WHERE id = $1"
)
DROP_LEASE = Query("drop_lease", "DELETE FROM leases WHERE id = $1")
DROP_CALLS = Query("drop_calls", "DELETE FROM calls WHERE lease = $1")
THAW = Query("thaw_calls", "DELETE FROM calls WHERE lease = $1 AND key = ANY ($2::text[])")
# What no byte was sent of goes back to where it stood, its attempt unused.
RETURN = Query(
    "return_unstarted",
    """
WITH held AS MATERIALIZED (
    SELECT * FROM leases WHERE id = $1 AND worker = $2 FOR UPDATE),
back AS (
    INSERT INTO ready (lane, class, tag, job_id, attempt, tries)
    SELECT h.lane, t.class, t.tag, t.job_id, t.attempt - 1, t.tries
      FROM held h, unnest(h.classes, h.tags, h.job_ids, h.attempts, h.tries)
                   AS t(class, tag, job_id, attempt, tries)
     WHERE t.job_id = ANY ($3::uuid[])
    ON CONFLICT DO NOTHING),
gone AS (DELETE FROM leases WHERE $4 AND id IN (SELECT id FROM held)),
thawed AS (DELETE FROM calls WHERE $4 AND lease IN (SELECT id FROM held))
SELECT count(*) FROM held
""",
)


async def renew(
    db: Connection, lease_ids: Sequence[int], *, worker: UUID, now: datetime, until: datetime
) -> set[int]:
    """Prolong these leases; the ids still ours. One that ran out is lost, even if nobody took it yet."""
    return {row[0] for row in await db.rows(RENEW, lease_ids, worker, until, now)}


async def freeze(db: Connection, lease: int, worker: UUID, call: FrozenCall) -> bool:
    """Write down what a call carries and says before its first byte leaves; False if the lease is lost."""
    return await db.execute(FREEZE, lease, worker, call.key, call.job_ids, call.body) == 1


async def park(db: Connection, lease: int, worker: UUID, *, until: datetime, counts: bool) -> bool:
    """Keep the lease's calls frozen until `until`, to be repeated then under the same keys.

    counts: a try of its jobs is used up.
    """
    return await db.execute(PARK, lease, worker, until, int(counts)) == 1


async def thaw(db: Connection, lease: int, keys: Sequence[str]) -> None:
    """Forget frozen calls that the provider is known not to have taken."""
    await db.execute(THAW, lease, keys)


async def dead(
    db: Connection, *, now: datetime, lanes: Sequence[int], limit: int
) -> list[DeadLease]:
    """Leases whose time ran out, locked; run it in a transaction."""
    rows = await db.rows(DEAD, now, lanes, limit)
    return [DeadLease(Lease(*row[:7]), row[7]) for row in rows]


async def calls_of(db: Connection, lease: int) -> list[FrozenCall]:
    return [FrozenCall(*row) for row in await db.rows(CALLS_OF, lease)]


async def reported(db: Connection, job_ids: Sequence[UUID], attempts: Sequence[int]) -> set[UUID]:
    """Which of these attempts have an outcome already."""
    return {row[0] for row in await db.rows(REPORTED, job_ids, attempts)}


async def adopt(
    db: Connection, lease: int, *, worker: UUID, now: datetime, until: datetime
) -> None:
    """Take over a dead lease that the caller has locked."""
    await db.execute(ADOPT, lease, worker, now, until)


async def shrink(db: Connection, lease: int, gone: Sequence[UUID]) -> None:
    """Take jobs off a lease that the caller has locked; some must be left."""
    await db.execute(SHRINK, lease, gone)


async def drop(db: Connection, lease: int) -> None:
    """End a lease that the caller has locked."""
    await db.execute(DROP_LEASE, lease)
    await db.execute(DROP_CALLS, lease)


async def return_unstarted(
    db: Connection, lease: int, worker: UUID, job_ids: Sequence[UUID], *, closes: bool
) -> bool:
    """Give back jobs of which no byte was sent; closes: nothing else of the lease is open."""
    return bool(await db.value(RETURN, lease, worker, job_ids, closes))
