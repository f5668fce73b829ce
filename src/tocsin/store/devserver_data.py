"""The directory of one private PostgreSQL, locked while somebody uses it."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from tocsin.domain.errors import Conflict
from tocsin.store.devserver_account import Account
from tocsin.store.devserver_binaries import SHARED_ROOT

DIRECTORIES_MAX = 9


_LOCK = "tocsin.lock"
_CLUSTER = "postgres"


class DataDirectory(Struct, frozen=True):
    """`path` holds everything; the lock lasts until `lock` (a file descriptor) is closed.

    in_use: the directory that was asked for, when somebody else has it; closed: when the server's
    account cannot enter it.
    """

    path: Path
    lock: int
    in_use: Path | None = None
    closed: Path | None = None

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own data directory."""
        return self.path / _CLUSTER

    @property
    def log(self) -> Path:
        """What the server said."""
        return self.path / "postgres.log"

    @property
    def password_file(self) -> Path:
        """The owner's password, readable to whoever started Tocsin."""
        return self.path / "password"

    @property
    def port_file(self) -> Path:
        """The port of the last run, taken again if it is free."""
        return self.path / "port"

    def release(self) -> None:
        """Let another process use the directory."""
        os.close(self.lock)


def owner_of(base: Path) -> int | None:
    """Who owns the data below `base`, if there is some."""
    cluster = base / _CLUSTER
    return cluster.stat().st_uid if cluster.exists() else None


def beside(base: Path) -> Iterator[Path]:
    """`base`, `base-2` … in the order in which they are taken."""
    yield base
    for number in range(2, DIRECTORIES_MAX + 1):
        yield base.with_name(f"{base.name}-{number}")


def placed(base: Path, account: Account) -> Path:
    """`base`, or where its data is kept when the server's account cannot enter it."""
    base = base.absolute()
    # What is not there yet is made so that it can be entered; so is `base` itself.
    existing = base.parent
    while not existing.exists():
        existing = existing.parent
    if not account.other or account.reaches(existing):
        return base
    return elsewhere(base)


def elsewhere(base: Path) -> Path:
    """Where the data of `base` is when it cannot be there."""
    return SHARED_ROOT / f"data-{hashlib.sha256(str(base).encode()).hexdigest()[:12]}"


def open_data_directory(base: Path, account: Account) -> DataDirectory:
    """`base`, or `base-2` … when a live process has it. Made if it is not there."""
    asked, base = base.absolute(), placed(base, account)
    for path in beside(base):
        _make(path, account)
        lock = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return DataDirectory(
            path,
            lock,
            in_use=None if path == base else base,
            closed=None if base == asked else asked,
        )
    raise Conflict(
        "data_directories_in_use",
        f"{base} and {DIRECTORIES_MAX - 1} more beside it are in use by running servers",
        remedy="stop one of them, or set TOCSIN_DATA to another directory",
    )


def _make(path: Path, account: Account) -> None:
    # The server's account passes through to its cluster, and can list nothing.
    mode = 0o711 if account.other else 0o700
    if not path.exists():
        for folder in reversed([path, *(up for up in path.parents if not up.exists())]):
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        return
    if not path.is_dir() or (any(path.iterdir()) and not (path / _LOCK).exists()):
        raise Conflict(
            "data_directory_foreign",
            f"{path} holds something else than Tocsin's data",
            remedy="set TOCSIN_DATA to a new or an empty directory",
        )
    if account.other and not account.reaches(path):
        path.chmod(path.stat().st_mode | 0o011)
