"""Priorities: 0 is most urgent, 100 least; five strict classes for the queue."""

from typing import Final

NAMED: Final[dict[str, int]] = {"critical": 10, "high": 30, "normal": 50, "low": 70, "bulk": 80}
DEFAULT: Final = NAMED["normal"]
BULK: Final = NAMED["bulk"]
#: Upper end of each class but the last; the index of a class is what the queue orders by.
_CLASS_ENDS: Final = (10, 30, 50, 79)
CLASSES: Final = tuple(range(len(_CLASS_ENDS) + 1))


def class_of(priority: int) -> int:
    """The queue's strict class of a priority: 0 (critical) to 4 (bulk)."""
    for index, end in enumerate(_CLASS_ENDS):
        if priority <= end:
            return index
    return len(_CLASS_ENDS)


def parse_priority(value: int | str) -> int | None:
    """A name, an int 0 to 100 or a numeric string; None when it is none of them."""
    if isinstance(value, str):
        name = value.strip().lower()
        if name in NAMED:
            return NAMED[name]
        if not (name.isascii() and name.isdigit() and len(name) <= 3):
            return None
        value = int(name)
    return value if 0 <= value <= 100 else None
