"""Priorities: notifyd's names and numbers, in five strict classes."""

import pytest

from tocsin.domain.priority import class_of, parse_priority


@pytest.mark.parametrize(
    ("given", "priority"),
    [
        ("critical", 10),
        ("HIGH", 30),
        ("normal", 50),
        ("low", 70),
        ("bulk", 80),
        (0, 0),
        ("100", 100),
    ],
)
def test_names_and_numbers_are_priorities(given: int | str, priority: int) -> None:
    assert parse_priority(given) == priority


@pytest.mark.parametrize("given", ["", "urgent", -1, 101, "1e1", "٣", "-5", "1000"])
def test_anything_else_is_none(given: int | str) -> None:
    assert parse_priority(given) is None


def test_classes_go_from_critical_to_bulk() -> None:
    assert [class_of(p) for p in (0, 10, 11, 30, 31, 50, 51, 79, 80, 100)] == [
        0, 0, 1, 1, 2, 2, 3, 3, 4, 4,
    ]  # fmt: skip
