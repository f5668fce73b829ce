"""What the tidy tests look at: the files a commit would hold, and the Python ones parsed."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tocsin"
CODE = ("src", "tests", "bench")

#: Where git does not answer (no git, or a clone owned by somebody else), these are passed over.
_NOT_OURS = {"node_modules", "__pycache__", "dist", "build"}


@cache
def files() -> tuple[Path, ...]:
    """All files that are committed or would be, without those that git ignores."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    names = listing.stdout.decode().split("\0")[:-1] if listing.returncode == 0 else _walk()
    return tuple(sorted(path for name in set(names) if (path := ROOT / name).is_file()))


def _walk() -> list[str]:
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
    return [
        str(path)
        for path in found
        if not _NOT_OURS.intersection(path.parts)
        and not any(part.startswith(".") and part != ".ci" for part in path.parts)
    ]


def texts(*suffixes: str) -> Iterator[tuple[str, str]]:
    """Name (relative to the root) and text of each file that is text; all without a suffix given."""
    for path in files():
        if suffixes and path.suffix not in suffixes:
            continue
        try:
            yield str(path.relative_to(ROOT)), path.read_text()
        except UnicodeDecodeError:
            continue


@cache
def modules(*tops: str) -> tuple[tuple[str, ast.Module], ...]:
    """Name (relative to the root) and tree of each Python file below the given directories."""
    wanted = tuple(f"{top}/" for top in tops or CODE)
    return tuple(
        (name, ast.parse(text, name)) for name, text in texts(".py") if name.startswith(wanted)
    )


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
