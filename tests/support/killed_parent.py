"""A program that starts a private PostgreSQL and waits to be killed.

Arguments: the data directory, and `orphaning` for a system on which a child outlives its parent.
Prints the server's process id once it runs.
"""

import signal
import sys
from pathlib import Path

from tocsin.store import devserver
from tocsin.store.devserver import DevServer
from tocsin.store.devserver_account import Account, dying_with_us


def as_account(account: Account) -> list[str]:
    """Run it as the account, with a signal at our death that does nothing."""
    return dying_with_us(signal.SIGCONT, account)


if sys.argv[2:] == ["orphaning"]:
    devserver.dying_with_us = lambda _, account: as_account(account)

with DevServer(Path(sys.argv[1]), durable=False) as server:
    sys.stdout.write(f"running {server.pid}\n")
    sys.stdout.flush()
    signal.pause()
