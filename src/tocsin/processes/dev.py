"""Dev: API, worker and a private PostgreSQL in one process, behind `tocsin dev`."""

import os
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from shlex import quote

import structlog

from tocsin import __version__, wiring
from tocsin.faces.cli.ports import DevOptions, DevReady
from tocsin.faces.http import server
from tocsin.faces.http.app import make
from tocsin.processes import logs, loop, memory
from tocsin.processes.database import prepare
from tocsin.processes.dev_keys import PROJECT, ensure_keys
from tocsin.processes.port import open_port, url_of
from tocsin.processes.signals import Signals
from tocsin.service.dev import completed
from tocsin.settings import Server, Settings, database_url
from tocsin.store.devserver import DevServer
from tocsin.store.devserver_watch import kept_running

_log = structlog.get_logger()


def run(settings: Settings, options: DevOptions, tell: Callable[[DevReady], None]) -> None:
    """Run until a signal; `tell` is called once everything runs."""
    logs.configure(settings.log)
    server.raise_open_files()
    loop.run(_main(settings, options, tell))


async def _main(settings: Settings, options: DevOptions, tell: Callable[[DevReady], None]) -> None:
    with Signals() as signals:
        # What is entered last stops first: streams and requests, intake, worker, PostgreSQL.
        async with AsyncExitStack() as stack:
            bound = stack.enter_context(_open_port(settings.server, options))
            private = None
            if not settings.database.url:
                private = DevServer(options.data or settings.data_dir)
                signals.on_force = lambda: _end(private.pid)
                await stack.enter_async_context(private)
                _say_where(private)
                await stack.enter_async_context(kept_running(private, signals.stop.set))
            url = database_url(settings) if private is None else private.url
            applied = await prepare(url)
            settings = completed(settings, url_of(bound))
            core = await stack.enter_async_context(wiring.open_core(settings, url, role="dev"))
            await stack.enter_async_context(wiring.open_worker(core))
            app = await stack.enter_async_context(wiring.open_app(core))
            folder = None if private is None else private.data_dir
            keys = await ensure_keys(app, folder, new_key=options.new_key)
            tell(
                DevReady(
                    url=url_of(bound),
                    project=PROJECT,
                    api_key=keys.api_key,
                    operator_key=keys.operator_key,
                    database_url=url if private is None else private.tcp_url,
                    data_dir=None if folder is None else str(folder),
                    psql=None if private is None else _psql(private),
                    reused=all(migration.id != 1 for migration in applied),
                    email=settings.connectors.email.provider or "none",
                    version=__version__,
                    data_note=None if private is None else private.why_elsewhere or None,
                )
            )
            memory.settle()
            signals.started()
            await server.serve(make(app), bound, signals.stop)
    _log.info("stopped")


def _open_port(configured: Server, options: DevOptions) -> socket.socket:
    """The port that was asked for; the usual one is only a wish, so the next free one will do."""
    host = options.host or configured.host
    if options.port is not None:
        return open_port(host, options.port)
    return open_port(host, configured.port, others=configured.port == Server().port)


def _say_where(private: DevServer) -> None:
    """Loudly when it is not where it was asked for: other data, other keys."""
    if private.why_elsewhere:
        _log.warning(
            "devserver.elsewhere",
            data_dir=str(private.data_dir),
            why=private.why_elsewhere,
            remedy="--data or TOCSIN_DATA chooses another place",
        )


def _psql(private: DevServer) -> str:
    """The command line, without the password itself."""
    password = quote(str(private.password_file))
    return f'PGPASSWORD="$(cat {password})" psql -h 127.0.0.1 -p {private.port} -U tocsin tocsin'


def _end(pid: int) -> None:
    """Have PostgreSQL stop by itself, without waiting for it."""
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
