"""Whatever fits or almost fits the OpenAPI document: no 5xx, and answers that are what it says."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from structlog.testing import capture_logs

from tests.faces.http.conftest import ADMIN, opened_app
from tests.support.asgi import Client
from tests.support.clock import MovableClock
from tests.support.postgres import TestServer
from tocsin.domain.ids import uuid7
from tocsin.faces.http.app import make
from tocsin.faces.http.server import listen, serve
from tocsin.store import inbox, workers
from tocsin.store.pool import Database

EXAMPLES = 40
NEGATIVE = schemathesis.GenerationMode.NEGATIVE
#: A stream does not end; an unsubscribe page is no JSON.
STREAM = "/v1/inbox/{subscriber_id}/stream"
CHECKS = [
    schemathesis.checks.not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


class Target:
    """A server in a thread of its own; key: of a project in which there is something to find."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))
        self.port = 0
        self.key = ""
        self.document: dict[str, Any] = {}

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(60)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        self._loop.close()

    async def _run(self) -> None:
        async with _furnished(self._url) as (front, key):
            self.key = key
            self.document = (await Client(front).get("/openapi.json")).json
            bound = listen("127.0.0.1", 0)
            self.port = bound.getsockname()[1]
            self._ready.set()
            await serve(front, bound, self._stop)


@asynccontextmanager
async def _furnished(url: str) -> AsyncIterator[tuple[Any, str]]:
    clock = MovableClock()
    async with await Database.open(url) as db, opened_app(db, clock) as app:
        front = make(app)
        admin = Client(front, {"x-api-key": ADMIN})
        made = await admin.post("/v1/admin/projects", {"id": "acme", "rate_limit_per_min": None})
        key = made.json["project"]["api_key"]
        await Client(front, {"x-api-key": key}).post("/v1/subscribers", {"id": "0"})
        await workers.beat(
            db, worker=uuid7(clock.now()), host="h", version="1", lanes=[], now=clock.now()
        )
        async with db.transaction() as tx:
            new = inbox.NewMessage(uuid7(clock.now()), 1, "0", "hello", "bell")
            await inbox.insert_messages(tx, [new], clock.now())
        yield front, key


@pytest.fixture(scope="module")
def target(postgres: TestServer) -> Iterator[Target]:
    with postgres.database() as url:
        running = Target(url)
        running.start()
        yield running
        running.stop()


def check(target: Target, case: schemathesis.Case) -> None:
    key = ADMIN if case.path.startswith("/v1/admin") else target.key
    response = case.call(
        base_url=f"http://127.0.0.1:{target.port}", headers={"X-Api-Key": key}, timeout=20
    )
    case.validate_response(response, checks=CHECKS)
    if response.status_code >= 400 and not case.path.startswith(("/u/", "/v1/health")):
        assert response.headers["content-type"] == ["application/problem+json"]
        problem = msgspec.json.decode(response.content)
        assert problem["status"] == response.status_code
        assert {"type", "title", "detail", "error", "code", "remedy"} <= set(problem)


def test_every_answer_is_one_that_the_document_knows(target: Target) -> None:
    tried = []
    described = schemathesis.openapi.from_dict(target.document).exclude(path=STREAM)
    for found in described.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy() | operation.as_strategy(generation_mode=NEGATIVE))
        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        def try_one(case: schemathesis.Case) -> None:
            check(target, case)

        with capture_logs() as logs:
            try_one()
        assert [line for line in logs if line["log_level"] == "error"] == [], operation.label
        tried.append(operation.label)

    assert len(tried) > 30
