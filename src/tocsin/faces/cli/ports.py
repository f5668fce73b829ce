"""Ports: what the command line needs of the layers above it, which hand themselves in."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tocsin.settings import Settings


class DevReady(Struct, frozen=True):
    """A running `tocsin dev`. Keys are None when they were shown before and are kept nowhere.

    reused: the data was there already. data_dir, psql: None when the database is not our own;
    data_note: why the data is not where it was asked for.
    """

    url: str
    project: str
    api_key: str | None
    operator_key: str | None
    database_url: str
    data_dir: str | None
    psql: str | None
    reused: bool
    email: str
    version: str
    data_note: str | None = None


class ServeReady(Struct, frozen=True):
    """A running `tocsin serve`. operator_key: only when this process has just made it."""

    url: str
    operator_key: str | None
    version: str


class DevOptions(Struct, frozen=True):
    """port None: the configured one, or the next that is free. new_key: replace the project's key."""

    host: str | None
    port: int | None
    data: Path | None
    new_key: bool


class ServeOptions(Struct, frozen=True):
    host: str | None
    port: int | None
    migrates: bool
    listens: bool


class WorkerOptions(Struct, frozen=True):
    migrates: bool
    listens: bool


class Starters(Struct, frozen=True):
    """Each runs until it is told to stop and returns; the callable it is given hears when it runs."""

    dev: Callable[[Settings, DevOptions, Callable[[DevReady], None]], None]
    serve: Callable[[Settings, ServeOptions, Callable[[ServeReady], None]], None]
    worker: Callable[[Settings, WorkerOptions], None]
