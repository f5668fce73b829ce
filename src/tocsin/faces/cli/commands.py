"""Commands: the name of each, what it is for, and where it is; known without loading any of them."""

from typing import Final

from msgspec import Struct


class Command(Struct, frozen=True):
    """target: `module:attribute`, or a method of `Start`."""

    name: str
    target: str
    text: str


COMMANDS: Final = (
    Command("dev", "dev", "Run everything on this machine, PostgreSQL included."),
    Command("serve", "serve", "Serve the API on the database of DATABASE_URL."),
    Command("worker", "worker", "Deliver what the database of DATABASE_URL holds."),
    Command("migrate", "tocsin.faces.cli.migrate:migrate", "Bring the database to this version."),
    Command("doctor", "tocsin.faces.cli.doctor:doctor", "Look for everything that can be wrong."),
    Command("config", "tocsin.faces.cli.config:config", "Show the settings in effect."),
    Command(
        "demo", "tocsin.faces.cli.demo.command:demo", "Send real mail on this machine, and look."
    ),
    Command("simulate", "tocsin.faces.cli.simulate:app", "Run a fake provider to test against."),
    Command("bench", "tocsin.faces.cli.bench.app:app", "Measure this machine."),
    Command("version", "tocsin.faces.cli.version:version", "Print the version."),
)
TITLE: Final = "Tocsin, a notification service on PostgreSQL alone."


def overview() -> str:
    """What `tocsin --help` says."""
    width = max(len(command.name) for command in COMMANDS)
    lines = [f"  {command.name:{width}}  {command.text}" for command in COMMANDS]
    return "\n".join(
        [
            TITLE,
            "",
            "Usage: tocsin COMMAND [OPTIONS]",
            "",
            *lines,
            "",
            "`tocsin COMMAND --help` shows a command's options. Start with `tocsin dev`.",
            "",
        ]
    )
