"""Worker: the process behind `tocsin worker`."""

import structlog

from tocsin import __version__, wiring
from tocsin.faces.cli.ports import WorkerOptions
from tocsin.processes import logs, loop, memory
from tocsin.processes.database import prepare
from tocsin.processes.signals import Signals
from tocsin.settings import Settings, database_url

_log = structlog.get_logger()


def run(settings: Settings, options: WorkerOptions) -> None:
    """Deliver until a signal; then finish or give back what is in hand."""
    logs.configure(settings.log)
    loop.run(_main(settings, options))


async def _main(settings: Settings, options: WorkerOptions) -> None:
    url = database_url(settings)
    with Signals() as signals:
        await prepare(url, migrates=options.migrates)
        async with (
            wiring.open_core(settings, url, role="worker", listen=options.listens) as core,
            wiring.open_worker(core) as worker,
        ):
            _log.info(
                "working",
                worker=str(worker.id),
                version=__version__,
                listens=core.notifier.listening,
                lanes=core.lanes,
                providers=wiring.configured(settings),
            )
            memory.settle()
            signals.started()
            await signals.stop.wait()
    _log.info("stopped")
