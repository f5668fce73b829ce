"""Whom the private PostgreSQL runs as: ourselves, or an unprivileged account when we are root."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from tocsin.domain.errors import Unavailable

# Debian's own account first: its PostgreSQL's files are readable to it in any case.
_USUAL_NAMES = ("postgres", "tocsin")
_MADE_NAME = "tocsin"
_USERADD = ("useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false")
_ADDUSER = ("adduser", "-S", "-D", "-H", "-s", "/bin/false")


class Account(Struct, frozen=True):
    """uid and gid; `other` when it is not the account this process runs as."""

    name: str
    uid: int
    gid: int
    other: bool

    def popen_arguments(self) -> dict[str, Any]:
        """What subprocess takes to run a program as this account."""
        if not self.other:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Give it the file or directory."""
        if self.other:
            os.chown(path, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Whether it may enter every directory above `path`, and `path` if that is one."""
        path = path.resolve()
        return all(self._enters(part) for part in (path, *path.parents) if part.is_dir())

    def _enters(self, folder: Path) -> bool:
        if not self.other:
            return os.access(folder, os.X_OK)
        status = folder.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & 0o100)
        return bool(status.st_mode & (0o010 if status.st_gid == self.gid else 0o001))


def server_account(owner_uid: int | None) -> Account:
    """The account to run as; `owner_uid` owns the data if there is some already."""
    uid = os.geteuid()
    if uid != 0:
        return Account(str(uid), uid, os.getegid(), other=False)
    if owner_uid:
        try:
            return _account(pwd.getpwuid(owner_uid))
        except KeyError:
            pass
    for name in _USUAL_NAMES:
        try:
            return _account(pwd.getpwnam(name))
        except KeyError:
            continue
    return _made_account()


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, other=True)


def _made_account() -> Account:
    for command in (_USERADD, _ADDUSER):
        if shutil.which(command[0]):
            done = subprocess.run(  # noqa: S603 - a constant
                [*command, _MADE_NAME], capture_output=True, check=False
            )
            if done.returncode == 0:
                return _account(pwd.getpwnam(_MADE_NAME))
    raise Unavailable(
        "no_server_account",
        "PostgreSQL refuses to run as root, and no other account could be found or made",
        remedy="make a system user named 'tocsin', or start Tocsin as an ordinary user",
    )


def dying_with_us(number: signal.Signals, account: Account) -> list[str]:
    """What goes before a command, so that it runs as the account and gets the signal at our end.

    Our end is that of the thread which starts it.
    """
    own = [sys.executable, "-I", "-S", str(Path(__file__).with_name("devserver_child.py"))]
    return [*own, str(int(number)), str(os.getpid()), str(account.uid), str(account.gid)]
