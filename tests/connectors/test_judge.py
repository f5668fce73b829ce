"""What an HTTP status means where a provider gives it no name."""

from typing import get_args

import pytest

from tests.connectors.contract import NOW
from tocsin.connectors.judge import UNSAID_WAIT_S, WAIT_MIN_S, judge_failure, judge_status
from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    Misconfigured,
    Outcome,
    Throttled,
    Transient,
    Unknown,
)
from tocsin.wire.http import NoAnswer, Reply, Unreachable


def judged(status: int, *, dedupes: bool = True, **headers: str) -> Outcome:
    lines = {name.replace("_", "-"): value for name, value in headers.items()}
    return judge_status(Reply(status, lines, b""), now=NOW, dedupes=dedupes)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((200, 201, 202, 204), Accepted),
        ((300, 301, 302, 307, 308), Misconfigured),
        ((401, 402, 403, 404, 405, 407), Misconfigured),
        ((400, 406, 410, 413, 414, 415, 422, 451), ContentRejected),
        ((408, 409, 421, 423, 425), Transient),
        ((429,), Throttled),
        ((500, 501, 502, 503, 504, 520, 599), Transient),
    ],
)
def test_a_status_means_the_same_everywhere(statuses: tuple[int, ...], expected: type) -> None:
    assert {status: type(judged(status)) for status in statuses} == dict.fromkeys(
        statuses, expected
    )


@pytest.mark.parametrize("status", [502, 504])
def test_a_gateways_failure_is_unknown_where_a_repeat_would_send_twice(status: int) -> None:
    assert isinstance(judged(status, dedupes=False), Unknown)
    assert isinstance(judged(status, dedupes=True), Transient)
    assert isinstance(judged(500, dedupes=False), Transient)


def test_a_burst_limit_rests_as_long_as_said_and_never_not_at_all() -> None:
    assert judged(429, retry_after="12") == Throttled(12.0)
    assert judged(429, retry_after="0") == Throttled(WAIT_MIN_S)
    assert judged(429, retry_after="Sun, 01 Mar 2026 12:01:00 GMT") == Throttled(60.0)
    assert judged(429, ratelimit_limit="5", ratelimit_reset="3") == Throttled(3.0)
    assert judged(429) == Throttled(UNSAID_WAIT_S)


def test_every_failure_has_an_outcome_in_words() -> None:
    lost = [Unreachable(code) for code in get_args(Unreachable.__annotations__["code"])]
    unclear = [NoAnswer(code) for code in get_args(NoAnswer.__annotations__["code"])]

    assert len(lost) == 5
    assert len(unclear) == 3
    for failure in lost:
        outcome = judge_failure(failure)
        assert isinstance(outcome, Transient)
        assert (outcome.code, bool(outcome.detail)) == (failure.code, True)
    for failure in unclear:
        outcome = judge_failure(failure)
        assert isinstance(outcome, Unknown)
        assert (outcome.code, bool(outcome.detail)) == (failure.code, True)
