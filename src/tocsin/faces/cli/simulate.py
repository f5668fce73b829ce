"""`tocsin simulate`: fake providers as processes of their own, to test against."""

import os
import sys
from typing import Annotated, NoReturn

from cyclopts import App, Parameter

Arguments = Annotated[str, Parameter(allow_leading_hyphen=True, help="Passed on to the simulator.")]

app = App(
    name="simulate",
    help="Run a fake provider; it prints its address as one line of JSON.",
    help_format="plaintext",
    result_action="return_value",
)


# The simulator's own help says what it takes.
@app.command(help_flags=(), version_flags=())
def smtp(*arguments: Arguments) -> NoReturn:
    """An SMTP server that accepts and journals mail."""
    _become("smtp", arguments)


# The simulator's own help says what it takes.
@app.command(help_flags=(), version_flags=())
def resend(*arguments: Arguments) -> NoReturn:
    """Resend's API, with its limits and its faults."""
    _become("resend", arguments)


def _become(name: str, arguments: tuple[str, ...]) -> NoReturn:
    """Replace this process: signals and exit code are the simulator's own."""
    command = [sys.executable, "-m", f"tocsin.simulators.{name}", *arguments]
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606 - our own interpreter and module
