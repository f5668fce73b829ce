"""What the tests of the store may ask for besides a database."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A directory that any account may pass through; pytest's own are closed."""
    made = Path(tempfile.mkdtemp(prefix="tocsin-dev-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)
