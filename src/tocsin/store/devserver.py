"""A private PostgreSQL: nothing to install, and nothing left running.

It listens on a Unix socket that only its account (and root) can reach, and on a free port of
127.0.0.1 with a password of its own, for psql.
"""

import asyncio
import hashlib
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

import structlog

from tocsin.domain.errors import Conflict, Unavailable
from tocsin.store.devserver_account import Account, dying_with_us, server_account
from tocsin.store.devserver_binaries import find_binaries
from tocsin.store.devserver_cluster import DATABASE, OWNER, clean_environment, ensure_cluster
from tocsin.store.devserver_data import DataDirectory, open_data_directory, owner_of
from tocsin.store.devserver_leftover import stop_leftover

START_TIMEOUT_S = 120.0
START_TRIES = 4
START_PAUSE_S = 0.5
#: The last processes of a server that was killed may take this long, in pauses, to end.
RESTART_TRIES = 20
STOP_FAST_S = 20.0
STOP_HARD_S = 5.0
POLL_S = 0.02
LOG_BYTES_MAX = 10_000_000
LOG_TAIL = 1_500
# sun_path of a socket's address, less the byte that ends it; macOS has four less.
SOCKET_PATH_MAX = 103

# Not TMPDIR, which may be as long as the path that is too long.
TEMPORARY = Path("/tmp")  # noqa: S108 - the name in it is checked for its owner

_UNSAFE = {"fsync": "off", "full_page_writes": "off"}

_log = structlog.get_logger()


class DevServer:
    """One server on one data directory, as long as the `with` lasts.

    data_dir: made if it is not there; `data_dir-2` … when another process has it. durable=False
    loses data with the machine (tests only). settings: further PostgreSQL settings by name.
    Raises Unavailable or Conflict with what to do.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        env: Mapping[str, str] | None = None,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._asked = data_dir.absolute()
        self._env = os.environ if env is None else env
        self._durable = durable
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._data: DataDirectory | None = None
        self._account: Account | None = None
        self._socket_dir = Path()
        self._password = ""
        self.port = 0
        self.version = (0, 0)

    @property
    def data_dir(self) -> Path:
        """Where the data is; not as asked if that was in use, or closed to the server's account."""
        return self._asked if self._data is None else self._data.path

    @property
    def why_elsewhere(self) -> str:
        """Why the data is not where it was asked for; empty when it is."""
        if self._data is None:
            return ""
        if self._data.in_use is not None:
            return f"{self._data.in_use} is in use by another `tocsin dev`"
        if self._data.closed is not None:
            assert self._account is not None
            return f"user {self._account.name}, who runs PostgreSQL, cannot enter {self._asked}"
        return ""

    @property
    def url(self) -> str:
        """For Tocsin: over the socket."""
        folder = quote(str(self._socket_dir), safe="")
        credentials = f"{OWNER}:{self._password}"
        return f"postgresql://{credentials}@/{DATABASE}?host={folder}&port={self.port}"

    @property
    def tcp_url(self) -> str:
        """For people: `psql <this>`."""
        return f"postgresql://{OWNER}:{self._password}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def password_file(self) -> Path:
        """Holds the password of `tcp_url`, readable to whoever started Tocsin."""
        assert self._data is not None
        return self._data.password_file

    @property
    def pid(self) -> int:
        """The server's process id; 0 when it does not run."""
        return 0 if self._process is None else self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it was started and runs no more, though nobody stopped it."""
        return self._process is not None and self._process.poll() is not None

    def start(self) -> None:
        """Return when the server takes connections. Call it from a thread that stays alive."""
        account = self._prepare()
        try:
            self._run(account)
        except BaseException:
            self.stop()
            raise

    async def restart(self) -> None:
        """Start it again where it was, once it has ended: same data, socket and port.

        Raises Unavailable. Like the first start it belongs to the calling thread.
        """
        assert self._data is not None
        assert self._account is not None
        for tried in range(1, RESTART_TRIES + 1):
            with _told(self._data.path):
                self._launch(self._data, self._account, self.port)
            if await asyncio.to_thread(self._is_ready, self._data):
                _log.warning("devserver.restarted", port=self.port, tried=tried)
                return
            if not self.has_ended:
                break
            await asyncio.sleep(START_PAUSE_S)
        raise _not_started(self._data)

    def _prepare(self) -> Account:
        with _told(self._asked):
            return self._prepared()

    def _prepared(self) -> Account:
        account = server_account(None)
        self._data = data = open_data_directory(self._asked, account)
        try:
            self._account = account = server_account(owner_of(data.path))
            binaries = find_binaries(self._env, account)
            self.version = binaries.version
            self._postgres = binaries.postgres
            stop_leftover(data.cluster)
            self._password = ensure_cluster(data, binaries, account, durable=self._durable)
            self._socket_dir = _socket_directory(data, account)
        except BaseException:
            self.stop()
            raise
        return account

    def _run(self, account: Account) -> None:
        assert self._data is not None
        for tried in range(1, START_TRIES + 1):
            with _told(self._data.path):
                self._launch(self._data, account, _free_port(self._data.port_file))
            if self._is_ready(self._data):
                self._data.port_file.write_text(str(self.port))
                _log.info("devserver.started", data_dir=str(self._data.path), port=self.port)
                return
            # A taken port, or the last processes of a server that was killed: both pass.
            _log.warning("devserver.not_started", tried=tried, log=str(self._data.log))
            self._data.port_file.unlink(missing_ok=True)
            self._wait(START_PAUSE_S)
        raise _not_started(self._data)

    def _launch(self, data: DataDirectory, account: Account, port: int) -> None:
        self.port = port
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self._socket_dir),
            "unix_socket_permissions": "0700",
            "logging_collector": "off",
            # Without the lines that quote rows: they hold addresses.
            "log_error_verbosity": "terse",
            "timezone": "UTC",
            **({} if self._durable else _UNSAFE),
            **self._settings,
        }
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        if data.log.exists() and data.log.stat().st_size > LOG_BYTES_MAX:
            data.log.replace(data.log.with_suffix(".log.1"))
        before = dying_with_us(signal.SIGINT, account)
        with data.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - PostgreSQL's own program
                [*before, str(self._postgres), "-D", str(data.cluster), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=clean_environment(),
                # Ctrl-C goes to whoever is in the foreground; Tocsin stops the server, last.
                start_new_session=True,
            )

    def _is_ready(self, data: DataDirectory) -> bool:
        pid_file = data.cluster / "postmaster.pid"
        for _ in range(int(START_TIMEOUT_S / POLL_S)):
            if self._wait(POLL_S):
                return False
            try:
                lines = pid_file.read_text().splitlines()
            except OSError:
                continue
            # Written line by line; the eighth is what pg_ctl waits for.
            if len(lines) >= 8 and (lines[0], lines[7].strip()) == (str(self.pid), "ready"):
                return True
        return False

    def _wait(self, patience_s: float) -> bool:
        """Whether the server has ended within that time."""
        if self._process is None:
            return True
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """End the server: sessions are cut off, nothing committed is lost. Never raises."""
        for number, patience_s in (
            (signal.SIGINT, STOP_FAST_S),
            (signal.SIGQUIT, STOP_HARD_S),
            (signal.SIGKILL, STOP_HARD_S),
        ):
            if self._process is None or self._process.poll() is not None:
                break
            self._process.send_signal(number)
            if self._wait(patience_s):
                break
        self._process = None
        if self._data is not None:
            if self._socket_dir.parent == TEMPORARY:
                with suppress(OSError):
                    self._socket_dir.rmdir()
            self._data.release()
            self._data = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        # The server is started by this thread and not by one that may end: its parent's end is
        # its own.
        account = await asyncio.to_thread(self._prepare)
        try:
            self._run(account)
        except BaseException:
            self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)


@contextmanager
def _told(place: Path) -> Iterator[None]:
    """Turn what the file system refuses into our words."""
    try:
        yield
    except OSError as error:
        raise Conflict(
            "data_directory_unusable",
            f"{error.filename or place} cannot be used: {error.strerror or type(error).__name__}",
            remedy="choose a directory that you may write to with --data or TOCSIN_DATA",
        ) from None


def _not_started(data: DataDirectory) -> Unavailable:
    return Unavailable(
        "postgres_not_started",
        f"PostgreSQL did not start; {data.log} ends with: {_tail(data.log)}",
        remedy="correct what the log says, or set DATABASE_URL to a database of your own",
    )


def _free_port(remembered: Path) -> int:
    """The port of last time if nobody has it, so that a saved psql command stays true."""
    try:
        wanted = int(remembered.read_text())
    except (OSError, ValueError):
        wanted = 0
    for port in (wanted, 0):
        with socket.socket() as probe:
            # As PostgreSQL does: connections that ended a moment ago take no port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                continue
            return int(probe.getsockname()[1])
    return 0


def _socket_directory(data: DataDirectory, account: Account) -> Path:
    """Below the data; in the system's temporary directory when that path is too long."""
    folder = data.path / "run"
    if len(os.fsencode(folder / ".s.PGSQL.65535")) > SOCKET_PATH_MAX:
        mark = hashlib.sha256(os.fsencode(data.path)).hexdigest()[:12]
        folder = TEMPORARY / f"tocsin-{account.uid}-{mark}"
    try:
        folder.mkdir(mode=0o700)
        account.own(folder)
    except FileExistsError:
        status = folder.lstat()
        if not folder.is_dir() or folder.is_symlink() or status.st_uid != account.uid:
            folder = Path(tempfile.mkdtemp(prefix="tocsin-", dir=TEMPORARY))
            account.own(folder)
    return folder


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-LOG_TAIL:].strip() if log.exists() else "(nothing)"
