"""Output: tables and words for people, JSON for programs, errors as one line with what to do."""

import sys
from collections.abc import Iterable
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tocsin.domain.errors import TocsinError

#: Of a terminal that does not say how wide it is: a log, a pipe.
WIDTH: Final = 120

_STYLES: Final = {"ok": "green", "warning": "yellow", "critical": "bold red"}


def console(*, stderr: bool = False) -> Console:
    """Where words go; plain when nobody looks."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH
    return Console(file=stream, width=width, highlight=False, soft_wrap=not stream.isatty())


def print_json(value: object) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(msgspec.json.encode(value, enc_hook=str).decode() + "\n")
    sys.stdout.flush()


def print_error(error: TocsinError) -> None:
    """What is wrong, one line for each thing, and at the end of the last what to do."""
    told = error.detail or error.code
    remedy = f"; {error.remedy}" if error.remedy else ""
    out = console(stderr=True)
    for line in (told + remedy).splitlines():
        out.print(f"[bold red]error:[/] {escape(line)}", soft_wrap=True)


def table(*columns: str) -> Table:
    """An empty table in the house's looks."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def print_facts(out: Console, rows: Iterable[tuple[str, str | Text]]) -> None:
    """Names and values, one below the other; a value is never broken, so that it can be copied."""
    known = list(rows)
    width = max(len(name) for name, _ in known) + 2
    for name, value in known:
        out.print(Text.assemble((name.ljust(width), "dim"), value), soft_wrap=True)


def severity(word: str) -> Text:
    """`ok`, `warning` or `critical` in its colour."""
    return Text(word, style=_STYLES.get(word, ""))
