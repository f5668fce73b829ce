"""Resend: batches that it takes, refuses in part, and refuses as a whole."""

import pytest
from msgspec.structs import replace

from tests.connectors.resend_bench import REFUSED, calling, mails, resend, sha256
from tocsin.connectors.email.resend.body import body_of
from tocsin.domain.message import Attachment, Mailbox
from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    QuotaSpent,
    RecipientPermanent,
    Throttled,
    Transient,
    Unknown,
)
from tocsin.simulators.fault import Fault


async def test_one_bad_address_of_a_batch_costs_the_others_nothing() -> None:
    several = mails(5)
    several[2] = replace(several[2], to=Mailbox("nobody"))
    async with resend() as bench:
        outcomes = await bench.resend.deliver(calling(*several))

    assert [type(outcome) for outcome in outcomes] == [
        Accepted, Accepted, RecipientPermanent, Accepted, Accepted,
    ]  # fmt: skip
    assert bench.calls == [("/emails/batch", "batch-1")]
    assert [entry.id for entry in bench.simulator.journal.entries] == [
        outcome.provider_message_id for outcome in outcomes if isinstance(outcome, Accepted)
    ]


async def test_a_batch_refused_as_a_whole_goes_one_by_one_under_the_jobs_ids() -> None:
    several = mails(4)
    several[1] = replace(several[1], subject="")
    async with resend(None, REFUSED) as bench:
        outcomes = await bench.resend.deliver(replace(calling(*several), messages=()))

    assert [type(outcome) for outcome in outcomes] == [
        Accepted, ContentRejected, Accepted, Accepted,
    ]  # fmt: skip
    singles = [("/emails", str(each.job_id)) for each in several]
    assert bench.calls == [("/emails/batch", "batch-1"), *singles]
    good = [several[0], several[2], several[3]]
    assert [(entry.key, entry.sha256) for entry in bench.simulator.journal.entries] == [
        (str(each.job_id), sha256(body_of([each]))) for each in good
    ]


async def test_a_repeat_of_a_batch_that_went_one_by_one_sends_nothing_twice() -> None:
    call = calling(*mails(3))
    async with resend(None, REFUSED, Fault("none", times=3), REFUSED) as bench:
        first = await bench.resend.deliver(call)
        again = await bench.resend.deliver(call)

    assert again == first
    assert len(bench.simulator.journal.entries) == 3


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", 429, '{"name":"rate_limit_exceeded"}'),
        Fault("status", 429, '{"name":"daily_quota_exceeded"}'),
        Fault("status", 401, '{"name":"missing_api_key"}'),
        Fault("status", 400, '{"name":"validation_error","message":"API key is invalid"}'),
        Fault("status", 400, '{"name":"invalid_idempotency_key"}'),
        Fault("status", 403, '{"name":"validation_error","message":"domain is not verified"}'),
        Fault("status", 409, '{"name":"invalid_idempotent_request"}'),
        Fault("status", 422, "<html>not Resend</html>"),
        Fault("status", 500, '{"name":"application_error"}'),
        Fault("status", 503, ""),
        Fault("reset"),
        Fault("drop"),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}-{fault.body[9:30]}",
)
async def test_a_batch_is_never_taken_apart_for_what_is_not_its_contents_fault(fault) -> None:
    async with resend(None, fault) as bench:
        outcomes = await bench.resend.deliver(calling(*mails(3)))

    assert bench.calls == [("/emails/batch", "batch-1")]
    assert bench.simulator.journal.entries == []
    assert outcomes == [outcomes[0]] * 3


@pytest.mark.parametrize(
    ("fault", "met", "rest"),
    [
        (
            Fault("status", 429, '{"name":"rate_limit_exceeded"}', {"retry-after": "2"}),
            Throttled,
            Throttled,
        ),
        (Fault("status", 429, '{"name":"daily_quota_exceeded"}'), QuotaSpent, QuotaSpent),
        (Fault("status", 500, ""), Transient, Transient),
        (Fault("reset", accept=True), Unknown, Transient),
    ],
)
async def test_one_by_one_ends_where_resend_says_no_to_more_than_a_mail(fault, met, rest) -> None:
    async with resend(None, REFUSED, Fault("none"), fault) as bench:
        outcomes = await bench.resend.deliver(calling(*mails(4)))

    assert [type(outcome) for outcome in outcomes] == [Accepted, met, rest, rest]
    assert len(bench.calls) == 3


async def test_mails_with_attachments_go_one_by_one_because_resend_takes_them_in_no_batch() -> None:
    several = mails(3)
    several[1] = replace(several[1], attachments=(Attachment("a.txt", b"a", "text/plain"),))
    async with resend() as bench:
        outcomes = await bench.resend.deliver(calling(*several))

    assert [type(outcome) for outcome in outcomes] == [Accepted] * 3
    assert bench.calls == [("/emails", str(each.job_id)) for each in several]


async def test_a_mail_that_only_speaks_of_attachments_goes_in_a_batch() -> None:
    text = ',"attachments":[{"content":"'
    async with resend() as bench:
        outcomes = await bench.resend.deliver(
            calling(*mails(2, text=text, subject=text, headers=((text, text),)))
        )

    assert bench.calls == [("/emails/batch", "batch-1")]
    assert [type(outcome) for outcome in outcomes] == [Accepted] * 2
