"""Each broken rule of the queue and the inbox is found; a database that is well has none."""

import pytest

from tests.support.postgres import run_on
from tocsin.store.invariants import MEANINGS, Violation, violations
from tocsin.store.pool import Database

SCHEDULED, READY, LEASED, SENT, FROZEN, GIVEN_BACK, RETRIED, MESSAGE = (
    f"019b0000-0000-7000-8000-00000000000{n}" for n in range(1, 9)
)
JOBS = (SCHEDULED, READY, LEASED, SENT, FROZEN, GIVEN_BACK, RETRIED, MESSAGE)
CONTENT = "019b0000-0000-7000-8000-000000000000"
OTHER = "019b0000-0000-7000-8000-0000000000ff"
NOBODY = "00000000-0000-0000-0000-000000000000"

#: One job in every place there is, and an inbox with one unread message, as the engine leaves them.
HEALTHY = f"""
SET search_path TO tocsin;
SELECT ensure_partitions(d, d + 1) FROM (SELECT '2025-12-07'::date AS d) x;
INSERT INTO projects (id, name, channels, created_at, updated_at)
VALUES ('p', 'p', '{{email,in_app}}', '2025-12-08', '2025-12-08');
INSERT INTO lanes (channel, provider, created_at)
VALUES ('email', 'log', '2025-12-08'), ('in_app', 'inapp', '2025-12-08');
CREATE TABLE public.at (now timestamptz);
INSERT INTO public.at SELECT to_timestamp(('x' || substr(replace('{CONTENT}', '-', ''), 1, 12))::bit(48)::bigint / 1000.0);
SELECT ensure_partitions((now AT TIME ZONE 'UTC')::date, (now AT TIME ZONE 'UTC')::date) FROM public.at;
INSERT INTO contents (id, project, body) VALUES ('{CONTENT}', 1, '{{}}');
INSERT INTO jobs (id, content_id, scheduled_at, project, lane, priority, max_attempts, subscriber_id, recipient)
SELECT id, '{CONTENT}', now, 1, CASE WHEN id = '{MESSAGE}' THEN 2 ELSE 1 END, 50, 5, 'ada', 'ada'
  FROM unnest('{{{",".join(JOBS)}}}'::uuid[]) AS id, public.at;
INSERT INTO scheduled (class, due_at, job_id, lane, project, attempt, tries)
SELECT 2, now, unnest('{{{SCHEDULED},{RETRIED}}}'::uuid[]), 1, 1, 0, 0 FROM public.at;
INSERT INTO ready (lane, class, tag, job_id, attempt, tries)
VALUES (1, 2, 1, '{READY}', 0, 0), (1, 2, 2, '{GIVEN_BACK}', 0, 0);
INSERT INTO leases (lane, worker, claimed_at, expires_at, classes, tags, job_ids, attempts, tries)
SELECT 1, '{OTHER}'::uuid, now, now, '{{2,2}}'::smallint[], '{{1,2}}'::bigint[],
       '{{{LEASED},{SENT}}}'::uuid[], '{{1,1}}'::smallint[], '{{0,0}}'::smallint[] FROM public.at;
INSERT INTO leases (lane, worker, claimed_at, expires_at, classes, tags, job_ids, attempts, tries)
SELECT 1, '{NOBODY}'::uuid, now, now, '{{2,2}}'::smallint[], '{{1,2}}'::bigint[],
       '{{{FROZEN},{GIVEN_BACK}}}'::uuid[], '{{1,1}}'::smallint[], '{{0,0}}'::smallint[] FROM public.at;
INSERT INTO calls (lease, key, job_ids, body) VALUES (2, 'k', '{{{FROZEN}}}', '');
INSERT INTO outcomes (job_id, at, next_at, project, lane, attempt, tries, state)
SELECT '{SENT}'::uuid, now, NULL::timestamptz, 1, 1, 1, 1, 1 FROM public.at UNION ALL
SELECT '{RETRIED}', now, now, 1, 1, 1, 1, 2 FROM public.at UNION ALL
SELECT '{MESSAGE}', now, NULL, 1, 2, 1, 1, 1 FROM public.at;
INSERT INTO subscribers (project, id, created_at, updated_at) SELECT 1, 'ada', now, now FROM public.at;
INSERT INTO inboxes VALUES (1, 'ada', 1, 1);
INSERT INTO inbox_messages (id, project, subscriber_id, body, icon, data, created_at)
SELECT '{MESSAGE}', 1, 'ada', 'b', 'i', '{{}}', now FROM public.at;
INSERT INTO inbox_changes (project, subscriber_id, version, at, kind, message_id, unread)
SELECT 1, 'ada', 1, now, 'new', '{MESSAGE}'::uuid, 1 FROM public.at;
"""

#: What breaks each rule, and the ids that are named for it.
BROKEN = {
    "lost_job": (f"DELETE FROM ready WHERE job_id = '{READY}'", [READY]),
    "doubled_job": (f"INSERT INTO ready VALUES (1, 2, 9, '{SENT}', 1, 0)", [SENT]),
    "place_without_job": (f"INSERT INTO ready VALUES (1, 2, 9, '{OTHER}', 0, 0)", [OTHER]),
    "outcome_without_job": (
        f"INSERT INTO outcomes SELECT '{OTHER}', now, NULL, 1, 1, 1, 1, 3 FROM public.at",
        [OTHER],
    ),
    "job_without_content": ("DELETE FROM contents", sorted(JOBS)[:5]),
    "sent_twice": (
        (
            f"UPDATE outcomes SET attempt = 0 WHERE job_id = '{SENT}';"
            f"INSERT INTO outcomes SELECT '{SENT}', now, NULL, 1, 1, 1, 1, 1 FROM public.at"
        ),
        [SENT],
    ),
    "tried_after_end": (
        f"INSERT INTO outcomes SELECT '{SENT}', now, NULL, 1, 1, 2, 1, 3 FROM public.at",
        [SENT],
    ),
    "queue_differs_from_job": (f"UPDATE ready SET lane = 2 WHERE job_id = '{READY}'", [READY]),
    "lease_without_jobs": (
        (
            "INSERT INTO leases (lane, worker, claimed_at, expires_at, classes, tags, job_ids, "
            f"attempts, tries) SELECT 1, worker, now, now, '{{2}}', '{{1}}', '{{{OTHER}}}', '{{1}}', "
            "'{0}' FROM leases, public.at WHERE id = 1"
        ),
        ["3"],
    ),
    "call_without_lease": (f"INSERT INTO calls VALUES (99, 'k', '{{{SENT}}}', '')", ["99"]),
    "call_of_foreign_job": (f"INSERT INTO calls VALUES (2, 'l', '{{{SENT}}}', '')", ["2"]),
    "unread_differs": ("UPDATE inbox_messages SET read_at = created_at", ["1:ada"]),
    "version_differs": ("UPDATE inboxes SET version = 2", ["1:ada"]),
    "version_gap": (
        (
            "UPDATE inboxes SET version = 3; INSERT INTO inbox_changes "
            "SELECT 1, 'ada', 3, now, 'todo', NULL, 1 FROM public.at"
        ),
        ["1:ada"],
    ),
    "inbox_missing": ("DELETE FROM inboxes", ["1:ada"]),
    "message_unsettled": (f"UPDATE outcomes SET state = 3 WHERE job_id = '{MESSAGE}'", [MESSAGE]),
    "message_missing": ("DELETE FROM inbox_messages; UPDATE inboxes SET unread = 0", [MESSAGE]),
    "message_unannounced": ("DELETE FROM inbox_changes", [MESSAGE]),
}
#: What follows from the same damage.
BESIDES = {
    "lease_without_jobs": {"place_without_job"},
    "inbox_missing": {"version_differs"},
    "message_missing": {"version_differs"},
}


@pytest.fixture
async def healthy(db: Database) -> Database:
    await run_on(db.url, HEALTHY)
    return db


async def test_a_job_in_every_place_and_a_full_inbox_violate_nothing(healthy: Database) -> None:
    assert await violations(healthy) == []


async def test_an_empty_database_violates_nothing(db: Database) -> None:
    assert await violations(db) == []


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_rule_is_found_with_its_ids(healthy: Database, kind: str) -> None:
    damage, samples = BROKEN[kind]
    await run_on(healthy.url, f"SET search_path TO tocsin; {damage}")

    found = {violation.kind: violation for violation in await violations(healthy)}

    assert found[kind].samples == samples
    assert found.keys() == {kind} | BESIDES.get(kind, set())


async def test_a_lease_frozen_in_part_does_not_hold_what_it_gave_back(healthy: Database) -> None:
    await run_on(healthy.url, f"DELETE FROM tocsin.ready WHERE job_id = '{GIVEN_BACK}'")

    # Its place is the lease again, as far as anybody can tell: no call, no queue, no outcome.
    assert await violations(healthy) == []


async def test_samples_are_bounded_and_the_count_is_not(healthy: Database) -> None:
    await run_on(healthy.url, "DELETE FROM tocsin.scheduled", "DELETE FROM tocsin.ready",
                 "DELETE FROM tocsin.calls", "DELETE FROM tocsin.leases",
                 "DELETE FROM tocsin.outcomes", "DELETE FROM tocsin.inbox_messages",
                 "DELETE FROM tocsin.inboxes", "DELETE FROM tocsin.inbox_changes")  # fmt: skip

    assert await violations(healthy) == [Violation("lost_job", len(JOBS), sorted(JOBS)[:5])]


def test_every_kind_of_violation_is_explained_and_provoked() -> None:
    assert MEANINGS.keys() == BROKEN.keys()
