"""Judgement: the outcomes of a call sorted into settled, given back and kept frozen. No I/O."""

import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from tocsin.connectors.base import Call
from tocsin.domain.job import State
from tocsin.domain.message import InAppMessage
from tocsin.domain.outcome import Accepted, Outcome, Transient, Unknown
from tocsin.domain.verdict import Verdict, judge
from tocsin.engine.run import Run
from tocsin.engine.settlement import DeadAddress, Pause, Settlement
from tocsin.store.inbox import NewMessage
from tocsin.store.outcomes import Fact

#: Details are for people; a provider's essay is not kept.
DETAIL_MAX = 300
_FREES_KEY = frozenset({State.FAILED, State.CANCELLED, State.EXPIRED})

Judged = tuple[UUID, Verdict]


def verdict_of(run: Run, job_id: UUID, outcome: Outcome) -> Verdict:
    """What an outcome makes of this job."""
    if type(outcome) is Accepted:
        return Verdict(State.SENT, provider_message_id=outcome.provider_message_id)
    assembled = run.assembled.get(job_id)
    return judge(
        outcome,
        tries=run.lease.tries[run.at[job_id]],
        attempts_max=assembled.job.max_attempts if assembled else 1,
        chance=random.random(),
        resend_unknown=assembled.content.resend_unknown if assembled else True,
    )


def sort_outcomes(
    run: Run, call: Call, outcomes: Sequence[Outcome], now: datetime
) -> tuple[list[Judged], Pause | None]:
    """The jobs that are settled now, and the lane's pause if the provider asked for one.

    The others are noted in the run: given back (a pause is no attempt, law 7), or kept frozen, to be
    repeated as the same bytes under the same key (laws 4 and 6).
    """
    if not run.reported and all(type(outcome) is Accepted for outcome in outcomes):
        pairs = zip(call.job_ids, outcomes, strict=True)
        return [(job_id, verdict_of(run, job_id, outcome)) for job_id, outcome in pairs], None
    settled: list[Judged] = []
    pause: Pause | None = None
    for job_id, outcome in zip(call.job_ids, outcomes, strict=True):
        if job_id in run.reported:
            continue
        verdict = verdict_of(run, job_id, outcome)
        if verdict.pause_s is not None and pause is None:
            reason = verdict.detail or "the provider asked for a pause"
            until = now + timedelta(seconds=verdict.pause_s)
            pause = Pause(run.lane.id, until, verdict.code or "throttled", reason)
        held = run.repeats and verdict.pause_s is not None
        unclear = isinstance(outcome, Unknown | Transient) and verdict.counts
        if call.frozen is not None and verdict.next_s is not None and (held or unclear):
            run.park(verdict.next_s, counts=verdict.counts)
        elif verdict.pause_s is not None:
            run.returned.append(job_id)
            if call.frozen is not None and call.key not in run.thawed:
                run.thawed.append(call.key)
        else:
            settled.append((job_id, verdict))
    return settled, pause


def settlement_of(run: Run, judged: Iterable[Judged], now: datetime) -> Settlement:
    """The rows that follow from verdicts."""
    facts: list[Fact] = []
    messages: list[NewMessage] = []
    freed: list[tuple[int, bytes, UUID]] = []
    dead: list[DeadAddress] = []
    local = run.spec.local
    for job_id, verdict in judged:
        at = run.at[job_id]
        assembled = run.assembled.get(job_id)
        project = assembled.job.project if assembled else 0
        facts.append(_fact(run, at, project, verdict, now))
        if assembled is None:
            continue
        job = assembled.job
        if job.idempotency is not None and verdict.state in _FREES_KEY:
            freed.append((project, job.idempotency, job_id))
        if verdict.suppress:
            code = verdict.code or "bounce"
            dead.append(DeadAddress(project, run.lane.channel, job.recipient, code, job_id))
        message = run.composed.pop(job_id, None) if local else None
        if isinstance(message, InAppMessage) and verdict.state is State.SENT:
            messages.append(_inbox_row(project, message))
    return Settlement(tuple(facts), tuple(messages), tuple(freed), tuple(dead))


def _fact(run: Run, at: int, project: int, verdict: Verdict, now: datetime) -> Fact:
    lease = run.lease
    return Fact(
        lease.id,
        lease.job_ids[at],
        lease.attempts[at],
        lease.tries[at] + verdict.counts,
        verdict.state,
        None if verdict.next_s is None else now + timedelta(seconds=verdict.next_s),
        project,
        lease.lane,
        lease.classes[at],
        verdict.code,
        verdict.detail[:DETAIL_MAX].replace("\0", "") if verdict.detail else None,
        verdict.provider_message_id,
    )


def _inbox_row(project: int, message: InAppMessage) -> NewMessage:
    return NewMessage(
        job_id=message.job_id,
        project=project,
        subscriber_id=message.subscriber_id,
        subject=message.subject,
        body=message.body,
        icon=message.icon,
        url=message.url,
        data=message.data,
    )
