"""Placeholders: `{{name}}` in a text, compiled once, filled in one pass; a value is never read again."""

import html
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from tocsin.domain.errors import Invalid

#: Characters of one filled text. A few bytes of template can ask for a long value very often.
FILLED_MAX = 5_000_000
#: Compiled texts kept; the oldest is forgotten first.
COMPILED_MAX = 2_000

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z0-9_][A-Za-z0-9_.-]*)\s*\}\}")
#: Control characters that would start a new header or break a single line.
_LINE_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")

#: Literal text and names by turns, literal first: `a {{b}} c` is ("a ", "b", " c").
Compiled = tuple[str, ...]


@lru_cache(maxsize=COMPILED_MAX)
def compile_text(text: str) -> Compiled:
    """Split a text at its placeholders; spaces inside the braces do not matter."""
    return tuple(_PLACEHOLDER.split(text))


def fill(compiled: Compiled, values: Mapping[str, Any]) -> str:
    """As plain text. A name without a value stays as it is written, as with notifyd."""
    return compiled[0] if len(compiled) == 1 else _join(compiled, values, as_text)


def fill_line(compiled: Compiled, values: Mapping[str, Any]) -> str:
    """As one line (a subject): line breaks become a space, so no value adds a header."""
    filled = fill(compiled, values)
    if filled.isprintable() or not _LINE_BREAKS.search(filled):
        return filled
    return _LINE_BREAKS.sub(" ", filled).strip()


def fill_html(compiled: Compiled, values: Mapping[str, Any]) -> str:
    """As HTML: every value is escaped."""
    return compiled[0] if len(compiled) == 1 else _join(compiled, values, as_html)


def bind(compiled: Compiled, values: Mapping[str, Any], write: Callable[[Any], str]) -> Compiled:
    """What stays to be filled once these values are in: a campaign's own vars, the same for everyone."""
    bound: list[str] = []
    pieces = [compiled[0]]
    size = len(compiled[0])
    for at in range(1, len(compiled), 2):
        found, value = look_up(values, compiled[at])
        if found:
            pieces.append(write(value))
            size += len(pieces[-1]) + len(compiled[at + 1])
            _refuse_long(size)
        else:
            bound += ["".join(pieces), compiled[at]]
            pieces = []
        pieces.append(compiled[at + 1])
    return (*bound, "".join(pieces))


def filled_length(text: str, values: Mapping[str, Any]) -> int:
    """Characters of the text with these values in, without putting them in; FILLED_MAX + 1 if more."""
    compiled = compile_text(text)
    size = sum(len(part) for part in compiled[::2])
    lengths: dict[str, int] = {}
    for name in compiled[1::2]:
        if name not in lengths:
            found, value = look_up(values, name)
            lengths[name] = len(as_text(value)) if found else len(name)
        size += lengths[name]
        if size > FILLED_MAX:
            return FILLED_MAX + 1
    return size


def _refuse_long(size: int) -> None:
    if size > FILLED_MAX:
        raise Invalid(
            "filled_too_long",
            f"a text is longer than {FILLED_MAX} characters once its placeholders are filled",
            remedy="use the value less often, or shorten it",
        )


def _join(compiled: Compiled, values: Mapping[str, Any], write: Callable[[Any], str]) -> str:
    made = list(compiled)
    size = 0
    for at in range(1, len(made), 2):
        name = made[at]
        value = values.get(name)
        if value is None:
            found, value = look_up(values, name)
            if not found:
                made[at] = "{{" + name + "}}"
                continue
        made[at] = filled = write(value)
        size += len(filled)
        if size > FILLED_MAX:
            _refuse_long(size)
    return "".join(made)


def look_up(values: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """(whether there is a value, the value); `a.b` looks into objects when there is no key `a.b`."""
    if name in values:
        return True, values[name]
    if "." not in name:
        return False, None
    value: Any = values
    for step in name.split("."):
        if not isinstance(value, dict) or step not in value:
            return False, None
        value = value[step]
    return True, value


def as_text(value: Any) -> str:
    """Text as it is, null as nothing, objects and arrays as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def as_html(value: Any) -> str:
    """The same, escaped for HTML text and attribute values."""
    return html.escape(as_text(value))
