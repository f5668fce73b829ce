"""The private PostgreSQL of a `tocsin dev` that runs in another process: how to reach it."""

import os
from pathlib import Path

from tocsin.store.devserver_cluster import DATABASE, OWNER
from tocsin.store.devserver_data import DataDirectory, elsewhere


def running_url(data_dir: Path) -> str | None:
    """Its URL, by the data directory that was asked for; None when none runs or it is not ours."""
    base = data_dir.absolute()
    for data in (DataDirectory(base, -1), DataDirectory(elsewhere(base), -1)):
        try:
            pid = int((data.cluster / "postmaster.pid").read_text().partition("\n")[0])
            # Only root reads what another account owns, and root may ask about any process.
            os.kill(pid, 0)
            password = data.password_file.read_text().strip()
            port = int(data.port_file.read_text())
        except (OSError, ValueError):
            continue
        return f"postgresql://{OWNER}:{password}@127.0.0.1:{port}/{DATABASE}"
    return None
