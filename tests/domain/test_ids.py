"""UUIDv7: valid by RFC 9562, sorted as made, in the partition of their time."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tocsin.domain.ids import floor_of, time_of, uuid7s

TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@given(TIMES, st.integers(1, 200))
def test_ids_of_one_call_are_valid_distinct_and_sorted(at: datetime, count: int) -> None:
    made = uuid7s(at, count)

    assert {(made_id.version, made_id.variant) for made_id in made} == {
        (7, "specified in RFC 4122")
    }
    assert made == sorted(set(made))


@given(TIMES)
def test_an_id_lies_within_its_millisecond(at: datetime) -> None:
    (made,) = uuid7s(at, 1)

    assert floor_of(at) <= made < floor_of(at + timedelta(milliseconds=1))
    assert timedelta(0) <= at - time_of(made) < timedelta(milliseconds=1)
