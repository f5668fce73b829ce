"""SMTP replies: read from bytes as they come, bounded; their codes and texts (RFC 5321 §4.2, RFC 3463)."""

import re

from msgspec import Struct

REPLY_LINE_MAX = 2048
"""Octets; RFC 5321 §4.5.3.1.5 allows 512, servers with long texts exceed it."""

REPLY_LINES_MAX = 128

_ENHANCED = re.compile(r"([245])\.(\d{1,3})\.(\d{1,3})(?=\s|$)")


class GarbledReplyError(Exception):
    """What came is no SMTP reply, or one without end: the connection cannot be trusted any more."""


class Reply(Struct, frozen=True):
    """One reply, all its lines. `lines` are without code and line end."""

    code: int
    lines: tuple[bytes, ...]

    @property
    def text(self) -> str:
        return b" ".join(self.lines).decode("utf-8", "replace")

    @property
    def enhanced(self) -> tuple[int, int, int] | None:
        """The status of RFC 3463, if the text begins with one."""
        found = _ENHANCED.match(self.lines[0].decode("utf-8", "replace"))
        return (int(found[1]), int(found[2]), int(found[3])) if found else None


class ReplyReader:
    """Bytes in, whole replies out."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[bytes] = []
        self._code = b""

    @property
    def empty(self) -> bool:
        """No part of a reply is waiting for its end."""
        return not self._rest and not self._lines

    def feed(self, data: bytes) -> list[Reply]:
        """The replies that `data` completes. Raises GarbledReplyError."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        replies: list[Reply] = []
        for raw in whole:
            line = raw[:-1] if raw.endswith(b"\r") else raw
            code = line[:3]
            mark = line[3:4]
            if len(line) > REPLY_LINE_MAX or len(code) != 3 or not code.isdigit():
                raise GarbledReplyError
            if self._lines and code != self._code:
                raise GarbledReplyError
            if mark in (b" ", b""):
                replies.append(Reply(int(code), (*self._lines, line[4:])))
                self._lines.clear()
            elif mark == b"-" and len(self._lines) < REPLY_LINES_MAX - 1:
                self._code = code
                self._lines.append(line[4:])
            else:
                raise GarbledReplyError
        if len(self._rest) > REPLY_LINE_MAX:
            raise GarbledReplyError
        return replies
