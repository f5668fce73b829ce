"""`tocsin config`: the settings in effect, secrets masked."""

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from tocsin.faces.cli import options
from tocsin.faces.cli.options import Config, Json
from tocsin.faces.cli.output import console, print_json, table
from tocsin.settings import shown, variables


def config(*, config: Config = None, as_json: Json = False) -> None:
    """Show the settings in effect: the file's, and the environment's over them. No secret is shown."""
    effective = shown(options.read(config))
    if as_json:
        print_json(effective)
        return
    known = variables()
    made = table("setting", "variable", "value")
    for path, value in _leaves(effective):
        made.add_row(path, Text(known.get(path, ""), style="dim"), _value(value))
    console().print(made)


def _leaves(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _value(value: Any) -> Text:
    if value is None:
        return Text("not set", style="dim")
    if isinstance(value, list | tuple):
        return Text(", ".join(map(str, value)))
    return Text(str(value))
