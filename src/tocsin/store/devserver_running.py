"""The private PostgreSQL of a `tocsin dev` that runs in another process: how to reach it."""

import os
from pathlib import Path

from msgspec import Struct

from tocsin.store.devserver_cluster import DATABASE, OWNER
from tocsin.store.devserver_data import DataDirectory, beside, elsewhere


class Running(Struct, frozen=True):
    """A server that runs; url: over TCP, with its password."""

    data_dir: Path
    url: str


def running(data_dir: Path) -> list[Running]:
    """Those on the directory that was asked for, or beside it; not those of other users."""
    base = data_dir.absolute()
    places = [*beside(base), *beside(elsewhere(base))]
    return [found for place in places if (found := _running_in(place)) is not None]


def _running_in(path: Path) -> Running | None:
    data = DataDirectory(path, -1)
    try:
        pid = int((data.cluster / "postmaster.pid").read_text().partition("\n")[0])
        # Only root reads what another account owns, and root may ask about any process.
        os.kill(pid, 0)
        password = data.password_file.read_text().strip()
        port = int(data.port_file.read_text())
    except (OSError, ValueError):
        return None
    return Running(path, f"postgresql://{OWNER}:{password}@127.0.0.1:{port}/{DATABASE}")
