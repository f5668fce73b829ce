"""One Resend account: the calls it makes, single, batch and one by one.

A batch asks to be validated item by item (`x-batch-validation: permissive`): Resend sends what is valid and
names the rest by index. Only when it still refuses the batch as a whole, and for what it says, or when the
batch holds attachments, which Resend takes in none, is each mail sent alone: under the job's own id, cut from
the same frozen bytes.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from tocsin.connectors.base import Call, Spec
from tocsin.connectors.email.resend.body import body_of, holds_attachments
from tocsin.connectors.email.resend.config import REQUEST_TIMEOUT_MAX_S, ResendConfig, check
from tocsin.connectors.email.resend.verdict import judge, judge_batch, judge_single
from tocsin.connectors.judge import WAIT_MIN_S, judge_failure
from tocsin.domain.clock import Clock
from tocsin.domain.message import Message
from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    Outcome,
    RecipientPermanent,
    Throttled,
    Transient,
    Unknown,
)
from tocsin.wire.http import HttpClient, NoAnswer, Reply, Unreachable
from tocsin.wire.retry_after import RateLimit, rate_limit

BATCH_MAX = 100
IN_FLIGHT_MAX = 10
#: Sending the mails of a refused batch one by one starts no further call after this.
ONE_BY_ONE_MAX_S = 30.0
#: So a delivery takes at most this: the batch, the time for single calls, and the last of them.
DELIVER_MAX_S = 2 * REQUEST_TIMEOUT_MAX_S + ONE_BY_ONE_MAX_S

SPEC: Final = Spec(
    name="resend",
    channel="email",
    title="Resend",
    docs="https://resend.com/docs/api-reference/emails/send-email",
    checked="2026-11-30",
    batch_max=BATCH_MAX,
    in_flight_max=IN_FLIGHT_MAX,
    dedupes=True,
)


class Resend:
    """One Resend account; owns `http` and closes it."""

    def __init__(self, config: ResendConfig, *, http: HttpClient, clock: Clock) -> None:
        config = check(config)
        self._http = http
        self._clock = clock
        self._timeout_s = config.timeout_s
        self._single = config.base_url + "/emails"
        self._batch = self._single + "/batch"
        self._headers = {
            "authorization": f"Bearer {config.api_key}",
            "content-type": "application/json",
        }
        self._rate: RateLimit | None = None

    @property
    def spec(self) -> Spec:
        return SPEC

    @property
    def rate(self) -> RateLimit | None:
        """The account's request limit as the last answer stated it; None before the first."""
        return self._rate

    def freeze(self, messages: Sequence[Message]) -> bytes:
        return body_of(messages)

    async def deliver(self, call: Call) -> list[Outcome]:
        """Within DELIVER_MAX_S."""
        body = call.frozen if call.frozen is not None else body_of(call.messages)
        count = len(call.job_ids)
        if count == 1:
            return [await self._send(call.key, body)]
        if holds_attachments(body):
            return await self._one_by_one(call, body)
        answer = await self._post(self._batch, call.key, body, batch=True)
        if not isinstance(answer, Reply):
            return [judge_failure(answer)] * count
        if 200 <= answer.status < 300:
            return judge_batch(answer, count)
        outcome = judge(answer, self._clock)
        match outcome:
            case ContentRejected(code) if code != "invalid_idempotency_key":
                return await self._one_by_one(call, body)
            case RecipientPermanent():
                return await self._one_by_one(call, body)
            case _:
                return [outcome] * count

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _send(self, key: str, body: bytes) -> Outcome:
        answer = await self._post(self._single, key, body, batch=False)
        if not isinstance(answer, Reply):
            return judge_failure(answer)
        if 200 <= answer.status < 300:
            return judge_single(answer)
        return judge(answer, self._clock)

    async def _one_by_one(self, call: Call, body: bytes) -> list[Outcome]:
        """Each mail alone, until something other than a verdict on a mail is said."""
        mails = msgspec.json.decode(body, type=list[msgspec.Raw])
        now = asyncio.get_running_loop().time
        until = now() + ONE_BY_ONE_MAX_S
        outcomes: list[Outcome] = []
        for job_id, mail in zip(call.job_ids, mails, strict=True):
            if now() >= until:
                return _fill(outcomes, Throttled(WAIT_MIN_S), len(call.job_ids))
            outcome = await self._send(str(job_id), bytes(mail))
            outcomes.append(outcome)
            match outcome:
                case Accepted() | ContentRejected() | RecipientPermanent():
                    continue
                case Unknown():
                    rest: Outcome = Transient("not_tried", "the mail before it got no answer")
                case _:
                    rest = outcome
            return _fill(outcomes, rest, len(call.job_ids))
        return outcomes

    async def _post(
        self, url: str, key: str, body: bytes, *, batch: bool
    ) -> Reply | Unreachable | NoAnswer:
        headers = self._headers | {"idempotency-key": key}
        if batch:
            headers["x-batch-validation"] = "permissive"
        answer = await self._http.request(
            "POST", url, headers=headers, body=body, timeout_s=self._timeout_s
        )
        if isinstance(answer, Reply):
            self._rate = rate_limit(answer.headers) or self._rate
        return answer


def _fill(outcomes: list[Outcome], rest: Outcome, count: int) -> list[Outcome]:
    return outcomes + [rest] * (count - len(outcomes))
