"""The command line's door: what needs no library is answered at once, the rest goes to the tree."""

import sys
from collections.abc import Sequence

from tocsin.faces.cli.commands import overview
from tocsin.faces.cli.ports import Starters


def run(arguments: Sequence[str], starters: Starters) -> int:
    """Run one command line; its exit code."""
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        sys.stdout.write(overview())
        return 0
    if arguments[0] in ("--version", "version"):
        from tocsin.faces.cli.version import version  # noqa: PLC0415 - a tenth of a second saved

        version()
        return 0
    from tocsin.faces.cli import tree  # noqa: PLC0415 - the same

    return tree.call(arguments, starters)
