"""Tree: the commands and their options as cyclopts knows them; each is loaded when it is called."""

import difflib
import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, UnknownCommandError

from tocsin import __version__
from tocsin.domain.errors import TocsinError
from tocsin.faces.cli.commands import COMMANDS, TITLE
from tocsin.faces.cli.exits import FAILED, INTERRUPTED, MISUSED
from tocsin.faces.cli.output import print_error
from tocsin.faces.cli.ports import Starters
from tocsin.faces.cli.start import Start


def build(starters: Starters) -> App:
    """The whole command line; `starters` are the processes it can start."""
    app = App(
        name="tocsin",
        help=TITLE,
        help_format="plaintext",
        version=__version__,
        result_action="return_value",
    )
    start = Start(starters)
    for command in COMMANDS:
        if ":" in command.target:
            app.command(command.target, name=command.name, help=command.text)
        else:
            app.command(getattr(start, command.target), name=command.name)
    return app


def call(arguments: Sequence[str], starters: Starters) -> int:
    """Run one command line; its exit code. Nothing that is the user's to correct is a traceback."""
    try:
        code = build(starters)(arguments, exit_on_error=False, print_error=False)
    except UnknownCommandError:
        return _misused(_unknown(arguments))
    except CycloptsError as error:
        return _misused(" ".join(str(error).split()).rstrip("."))
    except TocsinError as error:
        print_error(error)
        return MISUSED if error.code == "bad_settings" else FAILED
    except BrokenPipeError:
        # Whoever read our output has gone; what is still buffered must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _unknown(arguments: Sequence[str]) -> str:
    """Cyclopts would load every command to say this."""
    names = [command.name for command in COMMANDS]
    if not arguments or arguments[0] in names:
        return f"{' '.join(arguments)} is no command"
    near = difflib.get_close_matches(arguments[0], names, n=1)
    return f"{arguments[0]} is no command" + (f"; did you mean {near[0]}?" if near else "")


def _misused(text: str) -> int:
    sys.stderr.write(f"error: {text}; see `tocsin --help`\n")
    return MISUSED
