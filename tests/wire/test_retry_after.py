"""Retry-After and RateLimit headers: what servers really write, and what they should not."""

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.wire.retry_after import WAIT_MAX_S, RateLimit, http_date, rate_limit, retry_after_s

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NOVEMBER_6 = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)

moments = st.datetimes(
    min_value=datetime(1970, 1, 1),
    max_value=datetime(2060, 1, 1),
    timezones=st.just(UTC),
).map(lambda at: at.replace(microsecond=0))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("0", 0.0), (" 30 ", 30.0), ("1.5", 1.5), ("0064", 64.0)],
)
def test_seconds_are_taken_exactly(value: str, seconds: float) -> None:
    assert retry_after_s(value, now=NOW) == seconds


@pytest.mark.parametrize(
    "value",
    ["", "soon", "-1", "+1", "1e3", "1,5", "٣", "0x10", "inf", "nan", "1 s", "9" * 400, "tomorrow"],
)
def test_what_is_neither_seconds_nor_a_date_says_nothing(value: str) -> None:
    assert retry_after_s(value, now=NOW) is None


def test_an_absent_header_says_nothing() -> None:
    assert retry_after_s(None, now=NOW) is None


@pytest.mark.parametrize("value", ["86401", "999999999", "Fri, 01 Jan 2038 00:00:00 GMT"])
def test_a_wait_of_more_than_a_day_is_cut_to_a_day(value: str) -> None:
    assert retry_after_s(value, now=NOW) == WAIT_MAX_S


@pytest.mark.parametrize(
    "value",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ],
)
def test_all_three_forms_of_an_http_date_are_read(value: str) -> None:
    assert http_date(value) == NOVEMBER_6
    assert retry_after_s(value, now=NOVEMBER_6 - timedelta(seconds=90)) == 90.0


def test_a_date_that_has_passed_asks_for_no_wait() -> None:
    assert retry_after_s("Sun, 06 Nov 1994 08:49:37 GMT", now=NOW) == 0.0


@pytest.mark.parametrize(
    "value", ["Sun, 99 Nov 1994 08:49:37 GMT", "6 Nov", "Wed, 21 Oct 99999 07:28:00 GMT", "::::"]
)
def test_a_date_that_does_not_exist_is_none(value: str) -> None:
    assert http_date(value) is None


@given(at=moments, wait=st.integers(0, 86_400), skew=st.integers(-100_000, 100_000))
def test_a_date_is_measured_against_the_replys_own_date_whatever_our_clock_says(
    at: datetime, wait: int, skew: int
) -> None:
    until = format_datetime(at + timedelta(seconds=wait), usegmt=True)
    now = at + timedelta(seconds=skew)

    assert retry_after_s(until, now=now, date=format_datetime(at, usegmt=True)) == wait


def test_an_unreadable_date_header_leaves_our_own_clock() -> None:
    until = format_datetime(NOW + timedelta(seconds=20), usegmt=True)

    assert retry_after_s(until, now=NOW, date="yesterday") == 20.0


def test_our_clock_may_be_in_any_zone() -> None:
    until = format_datetime(NOW + timedelta(seconds=20), usegmt=True)

    assert retry_after_s(until, now=NOW.astimezone(timezone(timedelta(hours=9)))) == 20.0


@given(value=st.text(max_size=60), date=st.none() | st.text(max_size=60))
def test_no_text_at_all_leads_outside_the_bounds(value: str, date: str | None) -> None:
    wait = retry_after_s(value, now=NOW, date=date)

    assert wait is None or 0.0 <= wait <= WAIT_MAX_S


def test_resends_headers_are_read() -> None:
    headers = {
        "ratelimit-limit": "20",
        "ratelimit-policy": "20;w=1",
        "ratelimit-remaining": "19",
        "ratelimit-reset": "1",
    }

    assert rate_limit(headers) == RateLimit(limit=20, remaining=19, reset_s=1.0, window_s=1.0)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"ratelimit-remaining": "3"}, None),
        ({"ratelimit-limit": "many"}, None),
        ({"ratelimit-limit": "5"}, RateLimit(5)),
        ({"ratelimit-policy": "100;w=60"}, RateLimit(100, window_s=60.0)),
        ({"ratelimit-policy": '10;comment="a";w=1, 500;w=60'}, RateLimit(10, window_s=1.0)),
        ({"ratelimit-limit": "5", "ratelimit-policy": "?"}, RateLimit(5)),
        ({"ratelimit-limit": "5", "ratelimit-reset": "1e9"}, RateLimit(5)),
        ({"ratelimit-limit": "5", "ratelimit-reset": "99999999"}, RateLimit(5, None, WAIT_MAX_S)),
        ({"x-ratelimit-limit": "5"}, None),
    ],
)
def test_a_limit_is_known_only_when_one_is_stated(headers: dict, expected: RateLimit) -> None:
    assert rate_limit(headers) == expected


@given(
    st.dictionaries(
        st.sampled_from(
            ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "ratelimit-policy"]
        ),
        st.text(alphabet='0123456789;w=, .-"a', max_size=30),
    )
)
def test_no_headers_at_all_lead_outside_the_bounds(headers: dict[str, str]) -> None:
    known = rate_limit(headers)

    assert known is None or (known.limit >= 0 and 0 <= (known.reset_s or 0) <= WAIT_MAX_S)
