"""`tocsin migrate`: bring the database to this version and end."""

import asyncio

from tocsin.faces.cli import options
from tocsin.faces.cli.options import Config, Json
from tocsin.faces.cli.output import console, print_json
from tocsin.settings import database_url
from tocsin.store.migrate import Migration
from tocsin.store.migrate import migrate as apply


def migrate(*, config: Config = None, as_json: Json = False) -> None:
    """Bring the database of DATABASE_URL to this version.

    Safe beside running replicas and beside other migrations: one works, the others wait.
    """
    url = database_url(options.read(config))
    out = console()

    def note(migration: Migration) -> None:
        if not as_json:
            out.print(f"applying {migration.title}")

    applied = asyncio.run(apply(url, on_step=note))
    if as_json:
        print_json({"applied": [migration.title for migration in applied]})
    elif not applied:
        out.print("nothing to do: the database is of this version")
