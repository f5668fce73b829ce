"""`tocsin version`."""

import sys

from tocsin import __version__


def version() -> None:
    """Print the version."""
    sys.stdout.write(f"{__version__}\n")
