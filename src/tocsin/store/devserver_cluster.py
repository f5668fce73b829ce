"""A private PostgreSQL's cluster: made whole or not at all, and only opened by its own version."""

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tocsin.domain.errors import Conflict, Unavailable
from tocsin.store.devserver_account import Account, dying_with_us
from tocsin.store.devserver_binaries import Binaries
from tocsin.store.devserver_data import DataDirectory

OWNER = "tocsin"
DATABASE = "tocsin"
INITDB_TIMEOUT_S = 120.0
SAID_MAX = 1_500

_MAKING = ".making-"
_BUILTIN_LOCALE_SINCE = 17
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
# Local and loopback connections, with the password; nobody else.
_ACCESS = """\
local all all scram-sha-256
host all all 127.0.0.1/32 scram-sha-256
"""


def ensure_cluster(
    data: DataDirectory, binaries: Binaries, account: Account, *, durable: bool
) -> str:
    """Make the cluster, or check that it is of the programs' version; the owner's password."""
    for unfinished in data.path.glob(f"{_MAKING}*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    stated = data.cluster / "PG_VERSION"
    if not data.cluster.exists():
        _make_cluster(data, binaries, account, durable=durable)
    elif not stated.exists():
        raise Conflict(
            "data_directory_broken",
            f"{data.cluster} is no data directory of PostgreSQL: it has no PG_VERSION",
            remedy="move it away; a new one is made",
        )
    elif stated.read_text().strip() != str(binaries.version[0]):
        raise Conflict(
            "data_directory_other_version",
            f"{data.cluster} was made by PostgreSQL {stated.read_text().strip()}; "
            f"{binaries.folder} holds PostgreSQL {binaries.version[0]}",
            remedy="set TOCSIN_PG_BIN to the bin directory of the version that made it, "
            "or set TOCSIN_DATA to a new directory",
        )
    if not data.password_file.exists():
        _set_password(data, data.cluster, binaries, account)
    return data.password_file.read_text().strip()


def _make_cluster(
    data: DataDirectory, binaries: Binaries, account: Account, *, durable: bool
) -> None:
    # Renamed when it is whole: whatever ends us on the way leaves no half of a cluster.
    making = data.path / f"{_MAKING}{os.getpid()}"
    making.mkdir(mode=0o700)
    account.own(making)
    locale = ["--locale=C"]
    if binaries.version[0] >= _BUILTIN_LOCALE_SINCE:
        locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if not durable:
        locale.append("--no-sync")
    options = ["-U", OWNER, "--encoding=UTF8", "--auth=reject", *locale]
    _run([binaries.initdb, "-D", making, *options], account)
    (making / "pg_hba.conf").write_text(_ACCESS)
    _set_password(data, making, binaries, account, f"CREATE DATABASE {DATABASE}\n")
    making.rename(data.cluster)


def _set_password(
    data: DataDirectory, cluster: Path, binaries: Binaries, account: Account, more: str = ""
) -> None:
    password = secrets.token_urlsafe(18)
    _run(
        [binaries.postgres, "--single", "-D", cluster, "-c", "exit_on_error=on", "postgres"],
        account,
        f"ALTER ROLE {OWNER} PASSWORD '{password}'\n{more}",
    )
    opened = os.open(data.password_file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(opened, "w") as file:
        file.write(password)


def clean_environment() -> dict[str, str]:
    """What PostgreSQL needs of our environment: none of its own variables, no secret of ours."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}


def _run(command: Sequence[str | Path], account: Account, said: str = "") -> None:
    try:
        subprocess.run(  # noqa: S603 - PostgreSQL's own program
            [*dying_with_us(signal.SIGKILL, account), *command],
            input=said.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=True,
            timeout=INITDB_TIMEOUT_S,
            cwd="/",
            env=clean_environment(),
        )
    except subprocess.TimeoutExpired:
        why = f"it took longer than {INITDB_TIMEOUT_S:.0f} s"
    except subprocess.CalledProcessError as error:
        why = error.stdout.decode(errors="replace").strip()[-SAID_MAX:]
    else:
        return
    raise Unavailable(
        "cluster_not_made",
        f"PostgreSQL could not make its data directory; {Path(command[0]).name} said: {why}",
        remedy="set TOCSIN_DATA to a directory with free space, or DATABASE_URL to a database",
    )
