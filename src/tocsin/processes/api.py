"""API: the process behind `tocsin serve`."""

from collections.abc import Callable

import structlog

from tocsin import __version__, wiring
from tocsin.faces.cli.ports import ServeOptions, ServeReady
from tocsin.faces.http import server
from tocsin.faces.http.app import make
from tocsin.processes import logs, loop, memory
from tocsin.processes.database import prepare
from tocsin.processes.port import address_of, open_port, url_of
from tocsin.processes.signals import Signals
from tocsin.service.keys import ensure_operator_key
from tocsin.settings import Settings, database_url

_log = structlog.get_logger()


def run(settings: Settings, options: ServeOptions, tell: Callable[[ServeReady], None]) -> None:
    """Serve the API until a signal; `tell` is called once it can be reached."""
    logs.configure(settings.log)
    server.raise_open_files()
    loop.run(_main(settings, options, tell))


async def _main(
    settings: Settings, options: ServeOptions, tell: Callable[[ServeReady], None]
) -> None:
    url = database_url(settings)
    with Signals() as signals:
        bound = open_port(
            options.host or settings.server.host,
            settings.server.port if options.port is None else options.port,
        )
        with bound:
            await prepare(url, migrates=options.migrates)
            async with (
                wiring.open_core(settings, url, role="serve", listen=options.listens) as core,
                wiring.open_app(core) as app,
            ):
                made = await ensure_operator_key(app)
                host, port = address_of(bound)
                tell(ServeReady(url_of(bound), made, __version__))
                _log.info(
                    "serving",
                    host=host,
                    port=port,
                    version=__version__,
                    listens=core.notifier.listening,
                    channels=sorted(core.lanes),
                )
                memory.settle()
                signals.started()
                await server.serve(make(app), bound, signals.stop)
    _log.info("stopped")
