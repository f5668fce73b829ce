"""Options: what several commands take on the command line, and the settings behind them."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tocsin.settings import Settings, load

Config = Annotated[
    Path | None,
    Parameter(name="--config", help="Settings file; else TOCSIN_CONFIG, else ./tocsin.toml."),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, for programs.")]
Host = Annotated[str | None, Parameter(help="Address to listen on; else HOST, else 127.0.0.1.")]
Port = Annotated[int | None, Parameter(help="Port to listen on, 0 for any; else PORT, else 3400.")]
NoMigrate = Annotated[
    bool, Parameter(negative="", help="Refuse a database of an older version; change nothing.")
]
NoListen = Annotated[
    bool, Parameter(negative="", help="Poll only, for poolers that deliver no notifications.")
]


def read(path: Path | None) -> Settings:
    """The settings of the file and the environment. Raises BadSettings with every mistake."""
    return load(os.environ, path)
