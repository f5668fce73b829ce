"""The floor of sending, as a process: a raw handler, one group commit, the API's own statement.

`python -m tocsin.faces.cli.bench.bare PROJECT`, the database in DATABASE_URL; prints its address as JSON.
"""

import asyncio
import os
import sys
from typing import Any, Final
from uuid import UUID

import msgspec
import uvloop
from msgspec import Struct

from tocsin.domain.content import Content
from tocsin.domain.ids import uuid7s
from tocsin.domain.priority import DEFAULT, class_of
from tocsin.faces.cli.bench.enqueue_floor import ATTEMPTS, KEYS_LAST
from tocsin.simulators.asgi import Receive, Scope, Send, serve_until_signal
from tocsin.store import intake, lanes, upkeep
from tocsin.store.clock import DatabaseClock
from tocsin.store.group_commit import GroupCommit
from tocsin.store.pool import Database

ROWS_MAX: Final = 500
WAITING_MAX: Final = 20_000

_HEADERS: Final = (b"content-type", b"application/json")


class Said(Struct, frozen=True):
    """The members of a send that this floor knows."""

    to: str
    subject: str
    body: str
    vars: dict[str, Any]


class Answer(Struct, frozen=True):
    success: bool
    job_ids: list[UUID]


_decode = msgspec.json.Decoder(Said).decode
_encode = msgspec.json.Encoder().encode


class Bare:
    """The application."""

    def __init__(self, db: Database, clock: DatabaseClock, project: int, lane: int) -> None:
        self._db = db
        self._clock = clock
        self._project = project
        self._lane = lane
        self._commits: GroupCommit[Said, bytes] = GroupCommit(
            self._commit, rows_max=ROWS_MAX, queue_max=WAITING_MAX, name="bare sends"
        )
        self._commits.start()

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        body = b""
        more = True
        while more:
            event = await receive()
            body += event.get("body", b"")
            more = event.get("more_body", False)
        answer = await self._commits.submit(_decode(body))
        head = [_HEADERS, (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": answer})

    async def _commit(self, sends: list[Said]) -> list[bytes | Exception]:
        now = self._clock.now()
        ids = uuid7s(now, 2 * len(sends))
        contents = []
        jobs = []
        for at, said in enumerate(sends):
            words = Content(subject=said.subject, body=said.body, vars=said.vars)
            content_id, job_id = ids[2 * at : 2 * at + 2]
            contents.append(intake.NewContent(content_id, self._project, _encode(words).decode()))
            jobs.append(
                intake.NewJob(
                    id=job_id,
                    content_id=content_id,
                    project=self._project,
                    lane=self._lane,
                    priority=DEFAULT,
                    queue_class=class_of(DEFAULT),
                    max_attempts=ATTEMPTS,
                    scheduled_at=now,
                    expires_at=None,
                    subscriber_id=None,
                    recipient=said.to,
                    digest=None,
                    fingerprint=None,
                    answer=None,
                )
            )
        await intake.enqueue(self._db, contents, jobs, now=now, keys_until=now + KEYS_LAST)
        return [_encode(Answer(success=True, job_ids=[job.id])) for job in jobs]


async def main(project: int) -> None:
    """Serve until a signal."""
    async with await Database.open(os.environ["DATABASE_URL"], application_name="bench bare") as db:
        clock = DatabaseClock(db)
        await clock.resync()
        now = clock.now()
        await upkeep.ensure_partitions(db, now)
        lane = await lanes.ensure_lane(
            db, channel="email", provider="log", account="default", now=now
        )
        await serve_until_signal(Bare(db, clock, project, lane), 0)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
