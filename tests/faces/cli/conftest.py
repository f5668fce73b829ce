"""The command line called in this process, with no setting but the test's own."""

from collections.abc import Callable

import pytest

from tocsin.faces.cli import app
from tocsin.faces.cli.ports import Starters
from tocsin.settings import variables

Run = Callable[..., int]


def _refuse(*_: object) -> None:
    raise AssertionError("nothing is started here")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Run:
    """`run("migrate", "--json")` is its exit code; what it prints is captured by capsys."""
    for name in (*variables().values(), "TOCSIN_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    # A `tocsin dev` that runs on this machine is none of the test's.
    monkeypatch.setenv("TOCSIN_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    starters = Starters(dev=_refuse, serve=_refuse, worker=_refuse)
    return lambda *arguments: app.run(arguments, starters)
