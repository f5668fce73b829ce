"""What an SMTP simulator keeps of a mail it took: who, what, which job; as a JSON line before the 250 leaves."""

import hashlib
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

#: Kept in memory; the file, where one is given, holds them all.
MAILS_MAX = 1_000_000

_JOB = b"\r\nx-tocsin-job-id:"
_MESSAGE_ID = b"\r\nmessage-id:"


class Mail(Struct, frozen=True):
    """One accepted mail. id: as the 250 names it; raw: base64 in the file, and only if the journal keeps it."""

    id: str
    sender: str
    recipients: tuple[str, ...]
    sha256: str
    size: int
    job_id: str | None = None
    message_id: str | None = None
    raw: bytes | None = None


class Mailbook:
    """Mails in the order of acceptance. `keep`: with their bytes."""

    def __init__(self, path: Path | None = None, *, keep: bool = False) -> None:
        self.mails: list[Mail] = []
        self.total = 0
        self._keep = keep
        self._encoder = msgspec.json.Encoder()
        self._file: BinaryIO | None = path.open("ab", buffering=0) if path else None

    def take(self, sender: str, recipients: tuple[str, ...], raw: bytes) -> str:
        """Journal one mail, `raw` without dot-stuffing; returns the id to answer with."""
        self.total += 1
        head = (b"\r\n" + raw[: raw.find(b"\r\n\r\n")]).lower()
        mail = Mail(
            f"SIM{self.total:09d}",
            sender,
            recipients,
            hashlib.sha256(raw).hexdigest(),
            len(raw),
            _value(head, _JOB),
            _value(head, _MESSAGE_ID),
            raw if self._keep else None,
        )
        if len(self.mails) < MAILS_MAX:
            self.mails.append(mail)
        if self._file is not None:
            self._file.write(self._encoder.encode(mail) + b"\n")
        return mail.id

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _value(head: bytes, name: bytes) -> str | None:
    start = head.find(name)
    if start < 0:
        return None
    start += len(name)
    end = head.find(b"\r\n", start)
    value = head[start : end if end >= 0 else len(head)]
    return value.strip().strip(b"<>").decode("utf-8", "replace")
