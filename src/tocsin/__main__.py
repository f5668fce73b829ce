"""The `tocsin` command, and `python -m tocsin`: hands the processes to the command line and runs it."""

import sys
from collections.abc import Callable

from tocsin.faces.cli.app import run
from tocsin.faces.cli.ports import (
    DevOptions,
    DevReady,
    ServeOptions,
    ServeReady,
    Starters,
    WorkerOptions,
)
from tocsin.settings import Settings

# Imported when they are started: `tocsin --help` needs neither a web framework nor a driver.


def _dev(settings: Settings, options: DevOptions, tell: Callable[[DevReady], None]) -> None:
    from tocsin.processes import dev  # noqa: PLC0415 - see above

    dev.run(settings, options, tell)


def _serve(settings: Settings, options: ServeOptions, tell: Callable[[ServeReady], None]) -> None:
    from tocsin.processes import api  # noqa: PLC0415 - see above

    api.run(settings, options, tell)


def _worker(settings: Settings, options: WorkerOptions) -> None:
    from tocsin.processes import worker  # noqa: PLC0415 - see above

    worker.run(settings, options)


def main() -> None:
    """Run the command line of this process; its exit code is the process's."""
    sys.exit(run(sys.argv[1:], Starters(dev=_dev, serve=_serve, worker=_worker)))


if __name__ == "__main__":
    main()
