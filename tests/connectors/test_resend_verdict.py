"""Resend: what its answers mean."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.subjects import Frozen
from tocsin.connectors.email.resend.verdict import judge, judge_batch, judge_single
from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    Misconfigured,
    QuotaSpent,
    RecipientPermanent,
    Throttled,
    Transient,
    Unknown,
)
from tocsin.wire.http import Reply

KEY_TEXT = "API key is invalid"
TO_TEXT = "Invalid `to` field. The email address needs to follow the `email@example.com` format."


@pytest.mark.parametrize(
    ("status", "name", "message", "expected"),
    [
        (400, "validation_error", "Invalid `subject` field.", ContentRejected),
        (400, "validation_error", KEY_TEXT, Misconfigured),
        (400, "invalid_idempotency_key", "1-256 chars", ContentRejected),
        (401, "missing_api_key", "", Misconfigured),
        (401, "restricted_api_key", "", Misconfigured),
        (401, "validation_error", KEY_TEXT, Misconfigured),
        (401, "something_new", "", Misconfigured),
        (403, "invalid_api_key", "", Misconfigured),
        (403, "invalid_permission", "", Misconfigured),
        (403, "suspended_api_key", "", Misconfigured),
        (403, "email_above_quota", "", Misconfigured),
        (403, "validation_error", "The a.example domain is not verified.", Misconfigured),
        (403, "validation_error", "Only to your own email address (a@b.example)", Misconfigured),
        (403, "validation_error", "No.", Misconfigured),
        (404, "not_found", "", Misconfigured),
        (405, "method_not_allowed", "", Misconfigured),
        (409, "invalid_idempotent_request", "", Unknown),
        (409, "concurrent_idempotent_requests", "", Transient),
        (409, "resource_locked", "", Transient),
        (422, "missing_required_field", "Missing `subject` field.", ContentRejected),
        (422, "missing_required_parameter", "", ContentRejected),
        (422, "invalid_parameter", "", ContentRejected),
        (422, "invalid_attachment", "", ContentRejected),
        (422, "invalid_from_address", "Invalid `from` field.", ContentRejected),
        (422, "validation_error", TO_TEXT, RecipientPermanent),
        (422, "validation_error", "Invalid `cc` field.", ContentRejected),
        (422, "something_new", "", ContentRejected),
        (429, "rate_limit_exceeded", "", Throttled),
        (429, "validation_error", "", Throttled),
        (429, "daily_quota_exceeded", "", QuotaSpent),
        (429, "monthly_quota_exceeded", "", QuotaSpent),
        (500, "application_error", "", Transient),
        (500, "internal_server_error", "", Transient),
        (503, "service_unavailable", "", Transient),
        (503, "validation_error", "", Transient),
        (500, "daily_quota_exceeded", "", QuotaSpent),
    ],
)
def test_an_error_means_what_its_name_says(status, name, message, expected) -> None:
    body = msgspec.json.encode({"statusCode": status, "name": name, "message": message})

    assert type(judge(Reply(status, {}, body), Frozen())) is expected


@pytest.mark.parametrize(
    "body", [b"", b"<html>no</html>", b'"text"', b"[1]", b'{"name":7}', b"\xff"]
)
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (302, Misconfigured),
        (400, Transient),
        (401, Misconfigured),
        (403, Misconfigured),
        (404, Misconfigured),
        (409, Transient),
        (413, ContentRejected),
        (422, Transient),
        (429, Throttled),
        (500, Transient),
        (502, Transient),
        (520, Transient),
    ],
)
def test_an_error_that_is_not_in_resends_words_never_condemns_a_mail(
    status, body, expected
) -> None:
    assert type(judge(Reply(status, {}, body), Frozen())) is expected


def test_a_burst_limit_rests_as_long_as_it_says_else_until_the_window_ends() -> None:
    body = b'{"name":"rate_limit_exceeded","message":""}'

    assert judge(Reply(429, {"retry-after": "3"}, body), Frozen()) == Throttled(3.0)
    limited = {"ratelimit-limit": "5", "ratelimit-reset": "2"}
    assert judge(Reply(429, limited, body), Frozen()) == Throttled(2.0)
    at = {"retry-after": "Sun, 01 Mar 2026 12:00:09 GMT", "date": "Sun, 01 Mar 2026 12:00:00 GMT"}
    assert judge(Reply(429, at, body), Frozen()) == Throttled(9.0)


def test_a_spent_quota_is_no_burst_limit() -> None:
    body = b'{"name":"daily_quota_exceeded","message":""}'

    assert judge(Reply(429, {}, body), Frozen()) == QuotaSpent("daily_quota_exceeded")
    waiting = Reply(429, {"retry-after": "3600"}, body)
    assert judge(waiting, Frozen()) == QuotaSpent("daily_quota_exceeded", 3600.0)


@given(
    status=st.sampled_from([400, 401, 403, 404, 409, 413, 422, 429, 500, 503]),
    name=st.sampled_from(["validation_error", "not_found", "x@example.com", "re_zwieback", ""]),
    word=st.sampled_from(["", "`to`", "`cc`", "API key", "domain is not verified", "`jane`"]),
    around=st.tuples(st.text(max_size=30), st.text(max_size=30)),
)
def test_nothing_that_resend_writes_is_passed_on(status, name, word, around) -> None:
    message = f"{around[0]} jane@example.com re_zwieback {word} {around[1]}"
    body = msgspec.json.encode({"name": name, "message": message})
    said = repr(judge(Reply(status, {}, body), Frozen()))

    assert "example.com" not in said
    assert "zwieback" not in said


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"id":"abc"}', Accepted("abc")),
        (b"{}", Accepted()),
        (b'{"id":null}', Accepted()),
        (b'{"id":7}', Accepted()),
        (b'{"id":"' + b"x" * 200 + b'"}', Accepted()),
        (b"", Unknown),
        (b"<html>", Unknown),
        (b"[]", Unknown),
    ],
)
def test_success_without_an_id_is_success_and_without_json_is_unknown(body, expected) -> None:
    outcome = judge_single(Reply(200, {}, body))

    assert outcome == expected or type(outcome) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"data":[{"id":"a"},{"id":"b"}]}', [Accepted("a"), Accepted("b")]),
        ('{"data":[{"id":"a"}]}', [Accepted("a"), Accepted()]),
        ('{"data":[{},{"id":"b"}]}', [Accepted(), Accepted("b")]),
        ("{}", [Accepted(), Accepted()]),
        (
            '{"data":[{"id":"b"}],"errors":[{"index":0,"message":"Invalid `to` field."}]}',
            [RecipientPermanent, Accepted("b")],
        ),
        (
            '{"data":[{"id":"a"},{}],"errors":[{"index":1,"message":"No `html`."}]}',
            [Accepted("a"), ContentRejected],
        ),
        (
            '{"data":[],"errors":[{"index":0,"message":""},{"index":1,"message":""}]}',
            [ContentRejected, ContentRejected],
        ),
        ('{"data":[],"errors":[{"index":2,"message":""}]}', [Unknown, Unknown]),
        ('{"data":[],"errors":[{"message":""}]}', [Unknown, Unknown]),
        ('{"data":7}', [Unknown, Unknown]),
        ("[]", [Unknown, Unknown]),
        ('{"data":[{"id":"a"}', [Unknown, Unknown]),
    ],
)
def test_a_batchs_answer_is_read_by_order_and_by_index(body: str, expected: list) -> None:
    outcomes = judge_batch(Reply(200, {}, body.encode()), 2)

    assert len(outcomes) == 2
    for outcome, wanted in zip(outcomes, expected, strict=True):
        assert outcome == wanted or type(outcome) is wanted
