"""Digests: equal only for equal keys about equal things, wherever the separators stand."""

from hypothesis import given
from hypothesis import strategies as st

from tocsin.domain.idempotency import digest, digests

PARTS = st.lists(st.text(alphabet="ab-:0123456789", max_size=6), min_size=1, max_size=4)


@given(PARTS, PARTS)
def test_different_parts_have_different_digests(first: list[str], second: list[str]) -> None:
    assert (digest("send", *first) == digest("send", *second)) == (first == second)


@given(st.text(), st.lists(st.text(), max_size=5), st.text())
def test_many_at_once_are_what_they_are_one_by_one(
    key: str, firsts: list[str], second: str
) -> None:
    assert digests("batch", key, firsts, second) == [
        digest("batch", key, first, second) for first in firsts
    ]
