"""The journal of a simulator: one line per message it accepted, for the checker of a history."""

from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

#: Kept in memory; a file, where one is given, holds them all.
ENTRIES_MAX = 1_000_000


class Entry(Struct, frozen=True):
    """One accepted message. key: the idempotency key it came under; sha256: of the message's own bytes."""

    id: str
    key: str | None
    sha256: str
    tags: dict[str, str]
    at: datetime
    batch: bool = False


class Journal:
    """Entries in the order of acceptance, appended to `path` as JSON lines before the client is answered."""

    def __init__(self, path: Path | None = None) -> None:
        self.entries: list[Entry] = []
        self._file: BinaryIO | None = path.open("ab", buffering=0) if path else None

    def append(self, entries: list[Entry]) -> None:
        room = ENTRIES_MAX - len(self.entries)
        self.entries += entries[: max(room, 0)]
        if self._file is not None:
            self._file.write(msgspec.json.Encoder().encode_lines(entries))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
