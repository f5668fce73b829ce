"""Resend, simulated: keys, request limit, quotas, idempotency, strict and permissive batches, faults, a journal.

`python -m tocsin.simulators.resend --port 0 --journal FILE` prints its address as JSON when it listens, on
loopback only. `POST /_sim/faults` takes a list of faults, `GET /_sim/journal` answers what was accepted.
Only accepted requests are kept under their idempotency key; a refused one is judged anew.
"""

import argparse
import asyncio
import hashlib
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tocsin.domain.ids import uuid7s
from tocsin.simulators.asgi import Receive, Request, Scope, Send, serve_until_signal
from tocsin.simulators.fault import Fault, FaultScript
from tocsin.simulators.journal import Entry, Journal
from tocsin.simulators.resend_rules import KEY_MAX, Problem, recipients_of, refusal_of, tags_of

BATCH_MAX = 100
REQUESTS_PER_S = 5
KEPT_S = 24 * 3600.0
KEPT_MAX = 200_000
ACCOUNTS_MAX = 1_000

_NO_KEY = Problem(401, "missing_api_key", "Missing API Key")
_BAD_KEY = Problem(401, "validation_error", "API key is invalid")
_TOO_MANY = Problem(429, "rate_limit_exceeded", "Too many requests in this second.")
_NOT_FOUND = Problem(404, "not_found", "The requested endpoint does not exist.")
_NOT_ALLOWED = Problem(405, "method_not_allowed", "Method is not allowed for the requested path.")
_NOT_JSON = Problem(400, "validation_error", "The request body is not valid JSON.")
_BATCH_SIZE = Problem(422, "validation_error", f"A batch holds 1 to {BATCH_MAX} emails.")
_BAD_IDEMPOTENCY_KEY = Problem(
    400, "invalid_idempotency_key", f"The key must be between 1-{KEY_MAX} characters."
)
_OTHER_BODY = Problem(
    409,
    "invalid_idempotent_request",
    "This idempotency key has been used on a request that had a different payload.",
)
_RUNNING = Problem(
    409,
    "concurrent_idempotent_requests",
    "Another request with the same idempotency key is currently in progress.",
)


class Limits(Struct, frozen=True):
    """keys: those Resend knows, any `re_…` when empty; quotas count recipients and never refill."""

    keys: frozenset[str] = frozenset()
    requests_per_s: int = REQUESTS_PER_S
    daily_quota: int | None = None
    monthly_quota: int | None = None
    unverified: frozenset[str] = frozenset()


class _Answer(Struct, frozen=True):
    status: int
    body: bytes


class _Kept(Struct, frozen=True):
    sha256: str
    answer: _Answer
    until: float


class _Account:
    """What Resend remembers of one API key."""

    def __init__(self) -> None:
        self.second = -1
        self.requests = 0
        self.used = 0
        self.kept: dict[str, _Kept] = {}
        self.running: set[str] = set()


class ResendSimulator:
    """An ASGI application. monotonic: seconds, for the request limit and for how long keys are kept."""

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008  (frozen)
        *,
        journal: Journal | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.limits = limits
        self.journal = journal or Journal()
        self.faults = FaultScript()
        self._monotonic = monotonic
        self._now = now
        self._accounts: dict[str, _Account] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        if request.path.startswith("/_sim/"):
            await self._control(request)
            return
        fault = self.faults.take()
        if fault is not None and fault.kind == "drop":
            await request.abort()
            return
        body = await request.read()
        if body is None:
            await request.abort()
            return
        account, refusal = self._admit(request)
        key = request.headers.get("idempotency-key")
        if refusal is None and key and key in account.running:
            refusal = _problem(_RUNNING)
        if refusal is not None:
            await self._reply(request, account, refusal, fault)
            return
        # A key is taken until its client has the answer, or is gone.
        account.running.add(key or "")
        try:
            honest = fault is None or fault.accept or fault.kind == "none"
            answer = self._answer(account, request, key, body) if honest else _Answer(500, b"")
            await self._reply(request, account, answer, fault)
        finally:
            account.running.discard(key or "")

    def _admit(self, request: Request) -> tuple[_Account, _Answer | None]:
        """The account that asks, and why it may not."""
        if not request.headers.get("user-agent"):
            return _Account(), _Answer(403, b"error code: 1010")
        scheme, _, api_key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not api_key:
            return _Account(), _problem(_NO_KEY)
        known = self.limits.keys
        if api_key not in known if known else not api_key.startswith("re_"):
            return _Account(), _problem(_BAD_KEY)
        if api_key not in self._accounts and len(self._accounts) >= ACCOUNTS_MAX:
            del self._accounts[next(iter(self._accounts))]
        account = self._accounts.setdefault(api_key, _Account())
        second = math.floor(self._monotonic())
        if second != account.second:
            account.second, account.requests = second, 0
        account.requests += 1
        if account.requests > self.limits.requests_per_s:
            return account, _problem(_TOO_MANY)
        return account, None

    def _answer(self, account: _Account, request: Request, key: str | None, body: bytes) -> _Answer:
        if request.path not in ("/emails", "/emails/batch"):
            return _problem(_NOT_FOUND)
        if request.method != "POST":
            return _problem(_NOT_ALLOWED)
        if key is not None and not 1 <= len(key) <= KEY_MAX:
            return _problem(_BAD_IDEMPOTENCY_KEY)
        digest = hashlib.sha256(request.path.encode() + b"\n" + body).hexdigest()
        kept = account.kept.get(key) if key is not None else None
        if kept is not None and kept.until > self._monotonic():
            return kept.answer if kept.sha256 == digest else _problem(_OTHER_BODY)
        answer = self._judge(account, request, key, body)
        if key is not None and answer.status == 200:
            if len(account.kept) >= KEPT_MAX:
                del account.kept[next(iter(account.kept))]
            account.kept[key] = _Kept(digest, answer, self._monotonic() + KEPT_S)
        return answer

    def _judge(self, account: _Account, request: Request, key: str | None, body: bytes) -> _Answer:
        batch = request.path == "/emails/batch"
        try:
            raws = msgspec.json.decode(body, type=list[msgspec.Raw]) if batch else [body]
            mails = [msgspec.json.decode(raw) for raw in raws]
        except msgspec.DecodeError:
            return _problem(_NOT_JSON)
        if not 1 <= len(mails) <= BATCH_MAX:
            return _problem(_BATCH_SIZE)
        refusals = {
            index: problem
            for index, mail in enumerate(mails)
            if (problem := refusal_of(mail, unverified=self.limits.unverified, batch=batch))
        }
        permissive = batch and request.headers.get("x-batch-validation") == "permissive"
        for problem in refusals.values():
            if not permissive or problem.status == 403:
                return _problem(problem)
        good = [
            (bytes(raw), mail)
            for i, (raw, mail) in enumerate(zip(raws, mails, strict=True))
            if i not in refusals
        ]
        spent = self._spend(account, sum(recipients_of(mail) for _, mail in good))
        if spent is not None:
            return _problem(spent)
        ids = self._accept(good, key, batch=batch)
        if not batch:
            return _json(200, {"id": ids[0]})
        said: dict[str, Any] = {"data": [{"id": sent} for sent in ids]}
        if permissive:
            said["errors"] = [
                {"index": index, "message": problem.message} for index, problem in refusals.items()
            ]
        return _json(200, said)

    def _spend(self, account: _Account, recipients: int) -> Problem | None:
        used = account.used + recipients
        for quota, name in (
            (self.limits.daily_quota, "daily"),
            (self.limits.monthly_quota, "monthly"),
        ):
            if quota is not None and used > quota:
                text = f"You have reached your {name} email sending quota."
                return Problem(429, f"{name}_quota_exceeded", text)
        account.used = used
        return None

    def _accept(
        self, mails: list[tuple[bytes, dict[str, Any]]], key: str | None, *, batch: bool
    ) -> list[str]:
        at = self._now()
        ids = [str(made) for made in uuid7s(at, len(mails))]
        self.journal.append(
            [
                Entry(sent, key, hashlib.sha256(raw).hexdigest(), tags_of(mail), at, batch)
                for sent, (raw, mail) in zip(ids, mails, strict=True)
            ]
        )
        return ids

    async def _reply(
        self, request: Request, account: _Account, answer: _Answer, fault: Fault | None
    ) -> None:
        headers = self._headers(account)
        if answer.status == 429 and b"rate_limit_exceeded" in answer.body:
            headers["retry-after"] = headers["ratelimit-reset"]
        if fault is None or fault.kind == "none":
            await request.reply(answer.status, headers, answer.body)
        elif fault.kind == "status":
            await request.reply(fault.status, headers | fault.headers, fault.body.encode())
        elif fault.kind == "hang":
            await request.until_gone()
        else:
            await request.abort()

    def _headers(self, account: _Account) -> dict[str, str]:
        limit = self.limits.requests_per_s
        headers = {
            "content-type": "application/json; charset=utf-8",
            "date": format_datetime(self._now(), usegmt=True),
            "ratelimit-limit": str(limit),
            "ratelimit-policy": f"{limit};w=1",
            "ratelimit-remaining": str(max(limit - account.requests, 0)),
            "ratelimit-reset": "1",
            "x-resend-monthly-quota": str(account.used),
        }
        if self.limits.daily_quota is not None:
            headers["x-resend-daily-quota"] = str(account.used)
        return headers

    async def _control(self, request: Request) -> None:
        body = await request.read() or b""
        status, said = 200, b"{}"
        match request.method, request.path:
            case "POST", "/_sim/faults":
                try:
                    self.faults.add(*msgspec.json.decode(body, type=list[Fault]))
                except (msgspec.DecodeError, ValueError) as error:
                    status, said = 400, msgspec.json.encode({"message": str(error)})
            case "DELETE", "/_sim/faults":
                self.faults.clear()
            case "GET", "/_sim/journal":
                said = msgspec.json.encode(self.journal.entries)
            case _:
                status = 404
        await request.reply(status, {"content-type": "application/json"}, said)


def _json(status: int, said: object) -> _Answer:
    return _Answer(status, msgspec.json.encode(said))


def _problem(problem: Problem) -> _Answer:
    said = {"statusCode": problem.status, "message": problem.message, "name": problem.name}
    return _json(problem.status, said)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tocsin.simulators.resend", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 is any free one")
    parser.add_argument("--journal", type=Path, help="append a JSON line per accepted mail")
    parser.add_argument("--requests-per-s", type=int, default=REQUESTS_PER_S)
    parser.add_argument("--daily-quota", type=int)
    parser.add_argument("--monthly-quota", type=int)
    parser.add_argument("--unverified", action="append", default=[], help="a sender domain")
    asked = parser.parse_args()
    limits = Limits(
        requests_per_s=asked.requests_per_s,
        daily_quota=asked.daily_quota,
        monthly_quota=asked.monthly_quota,
        unverified=frozenset(asked.unverified),
    )
    simulator = ResendSimulator(limits, journal=Journal(asked.journal))
    try:
        asyncio.run(serve_until_signal(simulator, asked.port))
    finally:
        simulator.journal.close()


if __name__ == "__main__":
    main()
