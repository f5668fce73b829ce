"""Start: the commands that run until they are stopped: dev, serve, worker."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tocsin.faces.cli import options
from tocsin.faces.cli.options import Config, Host, Json, NoListen, NoMigrate, Port
from tocsin.faces.cli.ports import (
    DevOptions,
    DevReady,
    ServeOptions,
    ServeReady,
    Starters,
    WorkerOptions,
)


class Start:
    """Commands as methods: what they start is handed in from the layer above."""

    def __init__(self, starters: Starters) -> None:
        self._starters = starters

    def dev(
        self,
        *,
        host: Host = None,
        port: Port = None,
        data: Annotated[
            Path | None, Parameter(help="Where PostgreSQL keeps its data; else TOCSIN_DATA.")
        ] = None,
        new_key: Annotated[
            bool, Parameter(negative="", help="Replace the project's key, if it was lost.")
        ] = False,
        config: Config = None,
        as_json: Json = False,
    ) -> None:
        """Run everything on this machine: API, worker and a private PostgreSQL.

        Prints a key and a request to try. Stop it with Ctrl-C; the data stays.
        """
        wanted = DevOptions(host, port, data, new_key)
        tell = _print_json if as_json else _welcome
        self._starters.dev(options.read(config), wanted, tell)

    def serve(
        self,
        *,
        host: Host = None,
        port: Port = None,
        no_migrate: NoMigrate = False,
        no_listen: NoListen = False,
        config: Config = None,
        as_json: Json = False,
    ) -> None:
        """Serve the API on the database of DATABASE_URL; any number may run."""
        wanted = ServeOptions(host, port, migrates=not no_migrate, listens=not no_listen)
        tell = _print_json if as_json else _say_operator_key
        self._starters.serve(options.read(config), wanted, tell)

    def worker(
        self, *, no_migrate: NoMigrate = False, no_listen: NoListen = False, config: Config = None
    ) -> None:
        """Deliver what the database of DATABASE_URL holds; any number may run."""
        wanted = WorkerOptions(migrates=not no_migrate, listens=not no_listen)
        self._starters.worker(options.read(config), wanted)


def _print_json(ready: DevReady | ServeReady) -> None:
    from tocsin.faces.cli.output import print_json  # noqa: PLC0415 - not for --help

    print_json(ready)


def _welcome(ready: DevReady) -> None:
    from tocsin.faces.cli.welcome import print_welcome  # noqa: PLC0415 - not for --help

    print_welcome(ready)


def _say_operator_key(ready: ServeReady) -> None:
    from tocsin.faces.cli.welcome import print_operator_key  # noqa: PLC0415 - not for --help

    print_operator_key(ready)
