"""Phone numbers in the one form they are stored in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.domain.errors import Invalid
from tocsin.wire.phones import check_phone


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("+33 6 12 34 56 78", "+33612345678"),
        (" +1 (202) 555-0143 ", "+12025550143"),
        ("06 12 34 56 78", "0612345678"),
        ("+44\u00a07700 900123", "+447700900123"),
    ],
)
def test_a_number_is_stored_in_one_form(typed: str, stored: str) -> None:
    assert check_phone(typed, "phone") == stored


@pytest.mark.parametrize("typed", ["", "abc", "+", "12", "+1", "+999999999999", "1" * 41, "+33x"])
def test_what_is_no_number_is_refused_without_repeating_it(typed: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_phone(typed, "phone")

    assert caught.value.field == "phone"
    assert not typed or typed not in caught.value.detail


@given(st.text(max_size=60))
def test_whatever_is_typed_is_stored_as_digits_or_refused(typed: str) -> None:
    try:
        stored = check_phone(typed, "phone")
    except Invalid:
        return

    assert stored.removeprefix("+").isdigit()
