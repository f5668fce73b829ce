"""A demo clears away what a killed one left, and touches nobody else's."""

import fcntl
from contextlib import AsyncExitStack
from pathlib import Path

from tocsin.faces.cli.demo import stage


def left_in(root: Path, name: str) -> Path:
    lock = root / name / "data" / "tocsin.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    return lock


def names_in(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


async def test_what_a_killed_demo_left_is_removed_and_a_running_one_stays(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(stage.tempfile, "tempdir", str(tmp_path))
    left_in(tmp_path, "tocsin-demo-killed")
    left_in(tmp_path, "letters")
    running = left_in(tmp_path, "tocsin-demo-running")
    async with AsyncExitStack() as stack:
        with running.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            made = stage._folder(stack)
        names = names_in(tmp_path)

    assert names == {"letters", "tocsin-demo-running", made.name}
    assert not made.exists()
