"""A statement as a value, and what PostgreSQL says about it."""

from typing import Literal

from msgspec import Struct

Isolation = Literal["read_committed", "repeatable_read", "serializable"]


class Query(Struct, frozen=True):
    """One statement: a module-level constant beside the one function that runs it."""

    name: str
    text: str


class Signature(Struct, frozen=True):
    """What a statement takes and gives: type names, and (column, type name)."""

    parameters: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
