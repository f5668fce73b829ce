"""Dev keys: the first project of `tocsin dev`, its key and the operator's kept in one private file."""

import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tocsin.domain.errors import Conflict, Unauthenticated
from tocsin.service import projects
from tocsin.service.app import App
from tocsin.service.keys import KeyRing, ensure_operator_key
from tocsin.service.projects import ProjectIn, RotateIn

PROJECT: Final = "dev"
FILE: Final = "dev-keys.json"


class DevKeys(Struct, frozen=True):
    """None: the key exists and is not known here."""

    api_key: str | None = None
    operator_key: str | None = None


async def ensure_keys(app: App, folder: Path | None, *, new_key: bool) -> DevKeys:
    """The keys of the first project and of the operator, made when they are missing.

    folder: where they are kept between starts, None for nowhere. new_key: the project gets another.
    """
    path = None if folder is None else folder / FILE
    kept = DevKeys() if path is None else _read(path)
    ring = KeyRing(app)
    try:
        keys = DevKeys(
            api_key=await _project_key(app, ring, kept.api_key, new_key=new_key),
            operator_key=await _operator_key(app, ring, kept.operator_key),
        )
    finally:
        ring.close()
    if path is not None and keys != kept:
        _write(path, keys)
    return keys


async def _project_key(app: App, ring: KeyRing, kept: str | None, *, new_key: bool) -> str | None:
    if kept is not None and not new_key:
        try:
            await ring.project(kept)
        except Unauthenticated:
            pass
        else:
            return kept
    wanted = ProjectIn(PROJECT, name="Development", rate_limit_per_min=None)
    try:
        return (await projects.create(app, wanted)).project.api_key
    except Conflict:
        if not new_key:
            return None
        return (await projects.rotate_key(app, PROJECT, RotateIn(grace_hours=0))).new_api_key


async def _operator_key(app: App, ring: KeyRing, kept: str | None) -> str | None:
    made = await ensure_operator_key(app)
    if made is not None or kept is None:
        return made
    try:
        await ring.operator(kept, writes=True)
    except Unauthenticated:
        return None
    return kept


def _read(path: Path) -> DevKeys:
    try:
        return msgspec.json.decode(path.read_bytes(), type=DevKeys)
    except (OSError, msgspec.MsgspecError):
        return DevKeys()


def _write(path: Path, keys: DevKeys) -> None:
    """Whole or not at all, and never readable to others."""
    making = path.with_suffix(".new")
    making.unlink(missing_ok=True)
    opened = os.open(making, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
    with os.fdopen(opened, "wb") as file:
        file.write(msgspec.json.encode(keys))
    making.replace(path)
