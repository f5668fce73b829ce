"""The map in docs/ARCHITECTURE.md, made of the modules' captions: `python -m tests.tidy.map`."""

import ast
from pathlib import Path

from tests.tidy.sources import PACKAGE, ROOT, files

DOCUMENT = ROOT / "docs" / "ARCHITECTURE.md"
BEGIN = "<!-- map:begin -->"
END = "<!-- map:end -->"
_COLUMN = 30


def caption(path: Path) -> str:
    """The first line of a module's docstring, or nothing."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return docstring.partition("\n")[0]


def render() -> str:
    """The map as it must stand between the two marks."""
    lines = ["```text", f"{'tocsin/':{_COLUMN}}{caption(PACKAGE / '__init__.py')}"]
    lines += _below(PACKAGE, [path for path in files() if path.suffix == ".py"], depth=1)
    return "\n".join([*lines, "```"])


def _below(directory: Path, sources: list[Path], depth: int) -> list[str]:
    lines = []
    children = sorted(
        {
            directory / path.relative_to(directory).parts[0]
            for path in sources
            if path.is_relative_to(directory)
        }
    )
    for child in sorted(children, key=lambda path: (path.is_dir(), path.name)):
        room = child / "__init__.py" if child.is_dir() else child
        if child.name == "__init__.py":
            continue
        name = "  " * depth + child.name + ("/" if child.is_dir() else "")
        lines.append(f"{name:{_COLUMN}}{caption(room) if room.exists() else ''}".rstrip())
        if child.is_dir():
            lines += _below(child, sources, depth + 1)
    return lines


def drawn(document: str) -> str:
    """The map that a document holds now."""
    return document.partition(BEGIN)[2].partition(END)[0].strip()


def redraw(document: str) -> str:
    """The document with the map as it must be."""
    head, _, rest = document.partition(BEGIN)
    tail = rest.partition(END)[2]
    return f"{head}{BEGIN}\n{render()}\n{END}{tail}"


if __name__ == "__main__":
    DOCUMENT.write_text(redraw(DOCUMENT.read_text()))
