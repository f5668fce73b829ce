"""Progress: what each lane came to in the last minutes, and what was answered where it failed."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from tocsin.domain.job import State
from tocsin.store.leases import NOBODY
from tocsin.store.pool import Connection
from tocsin.store.query import Query

#: Attempts that are looked at for the reasons of failures: the newest jobs', and of jobs that wait.
ROWS_MAX: Final = 20_000

SENT: Final = (int(State.SENT),)
BAD: Final = tuple(int(state) for state in (State.RETRY, State.FAILED, State.UNKNOWN))


class Recent(Struct, frozen=True):
    """One lane. sent, bad: attempts that ended so; parked: jobs in calls that are kept to be repeated;

    held_since: when the oldest call that is under way was claimed.
    """

    lane: int
    sent: int
    bad: int
    parked: int
    held_since: datetime | None


class Reason(Struct, frozen=True):
    """The most frequent code of a lane's failures, and the last job that had it."""

    lane: int
    code: str
    job: str


RECENT = Query(
    "recent_progress",
    """
WITH ended AS (
    SELECT lane, sum(count) FILTER (WHERE state = ANY ($3::smallint[])) AS sent,
           sum(count) FILTER (WHERE state = ANY ($4::smallint[])) AS bad
      FROM rollups WHERE minute > $1 GROUP BY lane),
held AS (
    SELECT lane, sum(cardinality(job_ids)) FILTER (WHERE worker = $5) AS parked,
           min(claimed_at) FILTER (WHERE worker <> $5 AND expires_at > $2) AS since
      FROM leases GROUP BY lane)
SELECT l.id, coalesce(e.sent, 0)::bigint, coalesce(e.bad, 0)::bigint,
       coalesce(h.parked, 0)::bigint, h.since
  FROM lanes l LEFT JOIN ended e ON e.lane = l.id LEFT JOIN held h ON h.lane = l.id
 ORDER BY l.id LIMIT 10000
""",
)
# There is no index by time, and none is worth its price: the newest jobs and those that are tried
# again hold what a failing lane has to tell.
REASONS = Query(
    "recent_reasons",
    f"""
WITH newest AS (
    SELECT job_id, lane, state, at, code FROM outcomes ORDER BY job_id DESC LIMIT {ROWS_MAX}),
waiting AS (
    SELECT o.job_id, o.lane, o.state, o.at, o.code
      FROM (SELECT job_id, attempt FROM scheduled ORDER BY class, due_at, job_id LIMIT {ROWS_MAX}) s
      JOIN outcomes o ON o.job_id = s.job_id AND o.attempt = s.attempt
     WHERE s.attempt > 0),
counted AS (
    SELECT lane, code, count(*) AS times, (array_agg(job_id ORDER BY at DESC))[1]::text AS job
      FROM (SELECT * FROM newest UNION SELECT * FROM waiting) o
     WHERE at >= $1 AND state = ANY ($2::smallint[]) AND code IS NOT NULL GROUP BY lane, code)
SELECT DISTINCT ON (lane) lane, code, job FROM counted ORDER BY lane, times DESC, code
""",
)


async def recent(db: Connection, *, since: datetime, now: datetime) -> dict[int, Recent]:
    """By lane, what every one came to since then, by the minute."""
    found = [Recent(*row) for row in await db.rows(RECENT, since, now, SENT, BAD, NOBODY)]
    return {lane.lane: lane for lane in found}


async def reasons(db: Connection, *, since: datetime) -> dict[int, Reason]:
    """By lane, for lanes of which an attempt failed since then and is found in a bounded look."""
    found = [Reason(*row) for row in await db.rows(REASONS, since, BAD)]
    return {reason.lane: reason for reason in found}
