"""Resend: what is said to it byte for byte, and the account it is said for."""

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.resend_bench import JOB, REFUSED, calling, mail, mails, resend, sha256
from tests.connectors.subjects import Frozen
from tocsin.connectors.email.resend import DELIVER_MAX_S, Resend, ResendConfig
from tocsin.connectors.email.resend.body import body_of
from tocsin.domain.errors import Invalid
from tocsin.domain.message import Attachment, EmailMessage, Mailbox, TextMessage
from tocsin.domain.outcome import (
    Accepted,
    Misconfigured,
    QuotaSpent,
    Throttled,
    Transient,
    Unknown,
)
from tocsin.simulators.fault import Fault
from tocsin.simulators.resend import Limits
from tocsin.wire.http import HttpClient
from tocsin.wire.retry_after import RateLimit

BOUND_S = 10.0


def test_a_mail_is_exactly_these_bytes() -> None:
    body = body_of(
        [
            mail(
                sender=Mailbox("news@example.com", 'Acme, Inc. "The" One'),
                to=Mailbox("jane@example.com", "Jané Doe"),
                html="<p>Hello</p>",
                cc=("boss@example.com",),
                reply_to="help@example.com",
                headers=(("List-Unsubscribe", "<https://example.com/u/1>"),),
                attachments=(Attachment("a.txt", b"\x00\xff", "text/plain", "logo"),),
                tags=(("kind", "wélcome mail"), ("", "x"), ("tocsin_job_id", "stolen")),
            )
        ]
    )

    assert body.decode() == (
        r'{"from":"\"Acme, Inc. \\\"The\\\" One\" <news@example.com>",'
        '"to":["Jané Doe <jane@example.com>"],"subject":"Hi","html":"<p>Hello</p>",'
        '"text":"Hello","cc":["boss@example.com"],"reply_to":"help@example.com",'
        '"headers":{"List-Unsubscribe":"<https://example.com/u/1>"},'
        '"attachments":[{"content":"AP8=","filename":"a.txt","content_type":"text/plain",'
        '"content_id":"logo"}],'
        '"tags":[{"name":"tocsin_job_id","value":"01900000-0000-7000-8000-000000000001"},'
        '{"name":"kind","value":"w_lcome_mail"},{"name":"_","value":"x"}]}'
    )


def test_what_a_mail_does_not_have_is_not_said() -> None:
    assert body_of([mail()]).decode() == (
        '{"from":"news@example.com","to":["jane@example.com"],"subject":"Hi","text":"Hello",'
        '"tags":[{"name":"tocsin_job_id","value":"01900000-0000-7000-8000-000000000001"}]}'
    )


@given(
    st.lists(
        st.builds(
            mail,
            job_id=st.uuids(),
            subject=st.text(max_size=20),
            text=st.text(max_size=20),
            sender=st.builds(Mailbox, st.just("a@example.com"), st.none() | st.text(max_size=9)),
            tags=st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=2).map(
                tuple
            ),
        ),
        min_size=2,
        max_size=4,
    )
)
def test_a_batch_is_its_mails_so_each_can_be_cut_out_of_it(several: list[EmailMessage]) -> None:
    batch = body_of(several)

    assert batch == body_of(several)
    cut = msgspec.json.decode(batch, type=list[msgspec.Raw])
    assert [bytes(raw) for raw in cut] == [body_of([each]) for each in several]


def test_only_email_can_be_said() -> None:
    with pytest.raises(TypeError, match="TextMessage"):
        body_of([TextMessage(JOB, "sms", "+15005550006", "Hi")])


async def test_a_single_call_goes_out_under_the_jobs_id_and_a_batch_under_the_calls() -> None:
    async with resend() as bench:
        single, batch = calling(mail()), calling(*mails(3))
        await bench.resend.deliver(single)
        await bench.resend.deliver(batch)

    assert bench.calls == [("/emails", str(JOB)), ("/emails/batch", "batch-1")]
    assert [entry.sha256 for entry in bench.simulator.journal.entries] == [
        sha256(body_of([each])) for each in (*single.messages, *batch.messages)
    ]


async def test_the_same_key_with_another_body_is_unknown_and_sends_nothing() -> None:
    async with resend() as bench:
        await bench.resend.deliver(calling(mail()))
        outcomes = await bench.resend.deliver(calling(mail(subject="Another")))

    assert outcomes[0].code == "invalid_idempotent_request"
    assert isinstance(outcomes[0], Unknown)
    assert len(bench.simulator.journal.entries) == 1


async def test_a_repeat_while_the_first_try_still_runs_is_tried_again_later() -> None:
    call = calling(mail())
    async with resend(None, Fault("hang", accept=True)) as bench:
        accepted = asyncio.Event()
        append = bench.simulator.journal.append
        bench.simulator.journal.append = lambda entries: (append(entries), accepted.set())
        first = asyncio.create_task(bench.resend.deliver(call))
        await asyncio.wait_for(accepted.wait(), BOUND_S)
        outcomes = await bench.resend.deliver(call)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)

    assert isinstance(outcomes[0], Transient)
    assert outcomes[0].code == "concurrent_idempotent_requests"
    assert len(bench.simulator.journal.entries) == 1


async def test_the_request_limit_and_the_quota_of_a_real_account_are_told_apart() -> None:
    async with resend(Limits(requests_per_s=1000, daily_quota=2)) as bench:
        spent = [await bench.resend.deliver(calling(each)) for each in mails(3)]
    async with resend(Limits(requests_per_s=1)) as bench:
        bench.simulator._monotonic = lambda: 5.0
        fast = [await bench.resend.deliver(calling(each)) for each in mails(2)]

    assert spent[2] == [QuotaSpent("daily_quota_exceeded")]
    assert isinstance(fast[0][0], Accepted)
    assert fast[1] == [Throttled(1.0)]


async def test_the_accounts_limit_is_learned_from_every_answer() -> None:
    async with resend(Limits(requests_per_s=14)) as bench:
        assert bench.resend.rate is None
        await bench.resend.deliver(calling(mail()))
        assert bench.resend.rate == RateLimit(14, 13, reset_s=1.0, window_s=1.0)


async def test_a_sender_that_is_not_verified_is_our_configuration() -> None:
    async with resend(Limits(requests_per_s=1000, unverified=frozenset({"example.com"}))) as bench:
        single = await bench.resend.deliver(calling(mail()))
        batch = await bench.resend.deliver(calling(*mails(2)))

    assert {outcome.code for outcome in single + batch} == {"domain_not_verified"}
    assert all(isinstance(outcome, Misconfigured) for outcome in single + batch)


async def test_the_time_one_by_one_may_take_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr("tocsin.connectors.email.resend.account.ONE_BY_ONE_MAX_S", 0.0)
    async with resend(None, REFUSED) as bench:
        outcomes = await bench.resend.deliver(calling(*mails(3)))

    assert len(bench.calls) == 1
    assert all(isinstance(outcome, Throttled) for outcome in outcomes)
    assert DELIVER_MAX_S == 90.0


@pytest.mark.parametrize(
    ("field", "config"),
    [
        ("api_key", ResendConfig("")),
        ("api_key", ResendConfig("re_zwieback\n")),
        ("api_key", ResendConfig("re_zwié")),
        ("api_key", ResendConfig("Bearer re_zwieback")),
        ("base_url", ResendConfig("re_zwieback", "http://api.resend.com")),
        ("base_url", ResendConfig("re_zwieback", "ftp://localhost")),
        ("base_url", ResendConfig("re_zwieback", "api.resend.com")),
        ("base_url", ResendConfig("re_zwieback", "https://")),
        ("base_url", ResendConfig("re_zwieback", "https://[::")),
        ("base_url", ResendConfig("re_zwieback", "https://a b")),
        ("base_url", ResendConfig("re_zwieback", "https://a:b@api.resend.com")),
        ("base_url", ResendConfig("re_zwieback", "https://api.resend.com:99999")),
        ("base_url", ResendConfig("re_zwieback", "https://api.resend.com/?a=b")),
        ("timeout_s", ResendConfig("re_zwieback", timeout_s=0.0)),
        ("timeout_s", ResendConfig("re_zwieback", timeout_s=31.0)),
        ("timeout_s", ResendConfig("re_zwieback", timeout_s=float("nan"))),
    ],
)
def test_an_account_no_call_could_be_made_with_is_refused_at_once(field, config) -> None:
    with pytest.raises(Invalid) as refused:
        Resend(config, http=HttpClient(), clock=Frozen())

    assert refused.value.field == field
    assert refused.value.remedy
    assert "zwie" not in f"{refused.value} {refused.value.remedy}"


@pytest.mark.parametrize(
    "url", ["https://api.resend.com", "https://eu.example.com:8443/resend/", "http://[::1]:80"]
)
def test_a_base_url_may_have_a_port_and_a_path(url: str) -> None:
    made = Resend(ResendConfig("re_zwieback", url), http=HttpClient(), clock=Frozen())

    assert made.spec.name == "resend"


def test_a_config_shows_no_key() -> None:
    assert "zwieback" not in repr(ResendConfig("re_zwieback"))
