"""The locked files hold what is asked for: names, versions and hashes, nothing else."""

import re
import tomllib

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.sources import ROOT

_FOLDER = ROOT / "requirements"
_PIN = re.compile(r"^([a-z0-9-]+)(?:\[[a-z,]+\])?==([^ ;]+)(?: ; (.+?))? \\$")
_LINE = re.compile(r" +--hash=sha256:[0-9a-f]{64}(?: \\)?| *#.*|")


def _pins(lock: str) -> dict[str, str]:
    """Name → version, for the interpreter at hand."""
    matches = map(_PIN.match, (_FOLDER / lock).read_text().splitlines())
    found = (match.groups() for match in matches if match)
    return {
        name: version
        for name, version, marker in found
        if marker is None or Requirement(f"x ; {marker}").marker.evaluate(default_environment())
    }


def _asked(source: str) -> list[Requirement]:
    lines = (_FOLDER / source).read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]


def _missing(asked: list[Requirement], lock: str) -> list[str]:
    pins = _pins(lock)
    return [
        str(want)
        for want in asked
        if (pin := pins.get(canonicalize_name(want.name))) is None or pin not in want.specifier
    ]


def test_what_the_project_asks_for_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = project["dependencies"] + project["optional-dependencies"]["dev"]

    assert _missing([Requirement(line) for line in asked] + _asked("run.in"), "run.txt") == []


def test_what_the_tests_ask_for_is_locked() -> None:
    assert _missing(_asked("test.in"), "test.txt") == []


def test_tests_run_on_the_versions_that_users_run_on() -> None:
    run, test = _pins("run.txt"), _pins("test.txt")

    assert len(run) > len(_asked("run.in"))
    assert {name: test.get(name) for name in run} == run


def test_a_lock_holds_names_versions_and_hashes_and_nothing_else() -> None:
    strange = [
        line
        for lock in ("run.txt", "test.txt")
        for line in (_FOLDER / lock).read_text().splitlines()
        if not (_PIN.match(line) or _LINE.fullmatch(line)) or "://" in line
    ]

    assert strange == []
