"""The claim's plan: an index walk and a TID scan, whatever the statistics say and however long the queue is."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tocsin.store.pool import Database, Session
from tocsin.store.query import Query
from tocsin.store.queue import CLAIM, PROMOTE

FILL_READY = Query(
    "fill_ready",
    """
INSERT INTO ready (lane, class, tag, job_id, attempt, tries)
SELECT 1, n % 5, n, gen_random_uuid(), 0, 0 FROM generate_series($1::int, $2::int) n
""",
)
FILL_SCHEDULED = Query(
    "fill_scheduled",
    """
INSERT INTO scheduled (class, due_at, job_id, lane, project, attempt, tries)
SELECT n % 5, now() + n * interval '1 ms', gen_random_uuid(), 1, 1, 0, 0
  FROM generate_series($1::int, $2::int) n
""",
)
ADD_LANE = Query(
    "add_lane",
    "INSERT INTO lanes (channel, provider, created_at) VALUES ('email', 'log', now())",
)
#: What a plan that costs more than an index walk would show.
DEAR = {"Seq Scan", "Bitmap Heap Scan", "Hash Join", "Merge Join"}
BATCH = 100


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)


async def explained(session: Session, query: Query, arguments: str) -> list[dict[str, Any]]:
    """The plan's nodes as they ran."""
    await session.script("prepare", f"PREPARE q AS {query.text}")
    explain = Query("explain", f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE q({arguments})")
    text = await session.value(explain)
    return list(nodes(msgspec.json.decode(text)[0]["Plan"]))


@pytest.mark.parametrize("rows", [0, 300_000, 1_000_000])
async def test_a_claim_walks_the_index_and_touches_only_its_batch(db: Database, rows: int) -> None:
    await db.execute(ADD_LANE)
    await db.execute(Query("analyze", "ANALYZE ready"))
    await db.execute(FILL_READY, 1, rows)
    arguments = (
        "1, '{0,1,2,3,4}', '{0,0,0,0,0}', "
        f"{BATCH}, gen_random_uuid(), now(), now() + interval '30 s'"
    )

    async with db.queue.session() as session:
        found = await explained(session, CLAIM, arguments)

    on_ready = [n for n in found if n.get("Relation Name") == "ready"]
    assert {n["Node Type"] for n in on_ready} <= {"Index Scan", "Tid Scan", "ModifyTable"}
    scanned = sum(
        n["Actual Rows"] * n["Actual Loops"] for n in on_ready if "Index" in n["Node Type"]
    )
    assert scanned <= BATCH + 5


@pytest.mark.parametrize("rows", [0, 300_000])
async def test_a_promotion_touches_nothing_that_is_not_due(db: Database, rows: int) -> None:
    await db.execute(Query("analyze", "ANALYZE scheduled"))
    await db.execute(FILL_SCHEDULED, 1, rows)

    async with db.queue.session() as session:
        found = await explained(
            session, PROMOTE, f"'{{0,1,2,3,4}}', now() - interval '1 h', {BATCH}"
        )

    on_scheduled = [n for n in found if n.get("Relation Name") == "scheduled"]
    assert not {n["Node Type"] for n in on_scheduled} & DEAR
    assert sum(n["Actual Rows"] for n in on_scheduled) == 0
