"""Placeholders: `{{name}}` in a text, compiled once, filled in one pass; a value is never read again."""

import html
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

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


def names_in(text: str) -> set[str]:
    """The names a text asks for."""
    return set(compile_text(text)[1::2])


def fill(text: str, values: Mapping[str, Any]) -> str:
    """As plain text. A name without a value stays as it is written, as with notifyd."""
    parts = compile_text(text)
    if len(parts) == 1:
        return text
    return _join(parts, values, escape=False)


def fill_line(text: str, values: Mapping[str, Any]) -> str:
    """As one line (a subject): line breaks in a value become a space, so no value adds a header."""
    filled = fill(text, values)
    return _LINE_BREAKS.sub(" ", filled).strip() if _LINE_BREAKS.search(filled) else filled


def fill_html(text: str, values: Mapping[str, Any]) -> str:
    """As HTML: every value is escaped."""
    parts = compile_text(text)
    if len(parts) == 1:
        return text
    return _join(parts, values, escape=True)


def _join(parts: Compiled, values: Mapping[str, Any], *, escape: bool) -> str:
    made = [parts[0]]
    for at in range(1, len(parts), 2):
        found, value = look_up(values, parts[at])
        if not found:
            made.append("{{" + parts[at] + "}}")
        else:
            text = as_text(value)
            made.append(html.escape(text) if escape else text)
        made.append(parts[at + 1])
    return "".join(made)


def look_up(values: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """(whether there is a value, the value); `a.b` looks into objects when there is no key `a.b`."""
    if name in values:
        return True, values[name]
    value: Any = values
    for step in name.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return False, None
        value = value[step]
    return True, value


def as_text(value: Any) -> str:
    """Text as it is, null as nothing, objects and arrays as JSON."""
    match value:
        case str():
            return value
        case None:
            return ""
        case _:
            return msgspec.json.encode(value).decode()
