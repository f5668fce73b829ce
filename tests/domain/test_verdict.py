"""What each outcome makes of a job: the table that every connector relies on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.domain.job import State
from tocsin.domain.outcome import (
    Accepted,
    Cancelled,
    ContentRejected,
    Expired,
    Misconfigured,
    Outcome,
    QuotaSpent,
    RecipientPermanent,
    RecipientTemporary,
    Suppressed,
    Throttled,
    Transient,
    Unknown,
    Unsupported,
)
from tocsin.domain.retry import SCHEDULE_S, wait_s
from tocsin.domain.verdict import Verdict, judge


def verdict(outcome: Outcome, *, tries: int = 0, resend_unknown: bool = True) -> Verdict:
    return judge(outcome, tries=tries, attempts_max=5, chance=0.5, resend_unknown=resend_unknown)


@pytest.mark.parametrize(
    ("outcome", "state", "next_s", "pause_s", "counts"),
    [
        (Accepted("id"), State.SENT, None, None, True),
        (Suppressed("suppressed"), State.SKIPPED, None, None, True),
        (Cancelled(), State.CANCELLED, None, None, True),
        (Expired(), State.EXPIRED, None, None, True),
        (Throttled(7.0), State.THROTTLED, 7.0, 7.0, False),
        (Throttled(7.0, destination_only=True), State.THROTTLED, 7.0, None, False),
        (QuotaSpent("daily", 3600.0), State.THROTTLED, 3600.0, 3600.0, False),
        (QuotaSpent("daily"), State.THROTTLED, 900.0, 900.0, False),
        (Misconfigured("bad_key"), State.THROTTLED, 30.0, 30.0, False),
        (Transient("down"), State.RETRY, 30.0, None, True),
        (Transient("refused", down=True), State.THROTTLED, 5.0, 5.0, False),
        (RecipientTemporary("full"), State.RETRY, 30.0, None, True),
        (RecipientPermanent("gone"), State.FAILED, None, None, True),
        (ContentRejected("spam"), State.FAILED, None, None, True),
        (Unsupported("cc"), State.FAILED, None, None, True),
        (Unknown("timeout"), State.UNKNOWN, 2.0, None, True),
    ],
)
def test_each_outcome_has_its_meaning(
    outcome: Outcome, state: State, next_s: float | None, pause_s: float | None, counts: bool
) -> None:
    made = verdict(outcome)

    assert (made.state, made.next_s, made.pause_s, made.counts) == (state, next_s, pause_s, counts)


def test_a_429_never_uses_up_the_last_attempt() -> None:
    assert verdict(Throttled(1.0), tries=4).state is State.THROTTLED


def test_the_fifth_transient_failure_is_the_end() -> None:
    assert [verdict(Transient("down"), tries=n).state for n in (3, 4)] == [
        State.RETRY,
        State.FAILED,
    ]


def test_an_unknown_outcome_is_not_sent_again_where_once_is_the_limit() -> None:
    assert verdict(Unknown("timeout"), resend_unknown=False).next_s is None


def test_an_unknown_outcome_is_asked_again_soon_once_and_then_ever_later() -> None:
    waits = [verdict(Unknown("timeout"), tries=n).next_s for n in range(5)]

    assert waits == [2.0, 30.0, 120.0, 600.0, None]


def test_only_a_dead_address_is_suppressed() -> None:
    assert verdict(RecipientPermanent("gone", suppress=True)).suppress
    assert not verdict(RecipientPermanent("refused")).suppress


@given(st.integers(1, 20), st.floats(0, 1, exclude_max=True))
def test_every_wait_is_within_a_fifth_of_its_schedule(tries: int, chance: float) -> None:
    base = SCHEDULE_S[min(tries, len(SCHEDULE_S)) - 1]

    assert 0.8 * base <= wait_s(tries, chance) <= 1.2 * base
