"""Server-sent events of an inbox (WHATWG HTML §9.2): frames, bounded per client, ended in time."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Struct

from tocsin.faces.http.exchange import Receive, Send
from tocsin.service.inbox_feed import Change

RETRY_MS: Final = 2_000
#: What waits for one client; past it the client is told to fetch the list again.
QUEUE_BYTES_MAX: Final = 1024 * 1024
PING: Final = b": ping\n\n"
HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)

_encode = msgspec.json.Encoder().encode


class Notification(Struct, frozen=True):
    """A message as notifyd's event shows it, and its subject and data."""

    id: UUID
    body: str
    icon: str | None
    url: str | None
    created_at: datetime | None
    is_read: bool
    is_todo: bool
    subject: str | None
    data: Any


def frame(version: int | None, payload: dict[str, Any]) -> bytes:
    """One event of the default type; version: what a reconnect will ask to go on from."""
    data = _encode(payload)
    return b"data: %b\n\n" % data if version is None else b"id: %d\ndata: %b\n\n" % (version, data)


def count_frame(version: int, unread: int) -> bytes:
    """The absolute count; a client drops it when it knows a higher version."""
    payload = {"type": "count_update", "unread_count": unread, "version": version}
    return frame(version, payload)


def reset_frame(version: int) -> bytes:
    """Fetch the list again: events between are not to be had."""
    return frame(version, {"type": "reset", "version": version})


def change_frame(change: Change) -> bytes:
    """One change; empty when it is about a message that is gone."""
    seen = {"unread_count": change.unread, "version": change.version}
    match change.kind:
        case "new":
            if change.body is None:
                return b""
            shown = Notification(
                id=change.message_id or UUID(int=0),
                body=change.body,
                icon=change.icon,
                url=change.url,
                created_at=change.created_at,
                is_read=False,
                is_todo=False,
                subject=change.subject,
                data=msgspec.json.decode(change.data or "{}"),
            )
            payload = {"type": "new_notification", "notification": shown, **seen}
        case "todo":
            payload = {
                "type": "todo", "id": change.message_id, "is_todo": bool(change.is_todo), **seen,
            }  # fmt: skip
        case "read_all":
            payload = {"type": "read_all", **seen}
        case kind:
            payload = {"type": kind, "id": change.message_id, **seen}
    return frame(change.version, payload)


class Stream:
    """One client. Idle it is one task that waits for the client to leave; writing takes another."""

    __slots__ = (
        "_ended", "_left", "_queue", "_queued", "_send", "_writer", "ends_at", "project", "spoke_at",
    )  # fmt: skip

    def __init__(self, send: Send, project: int, ends_at: float, now: float) -> None:
        self._send = send
        self._queue: list[bytes] = []
        self._queued = 0
        self._ended = False
        self._left = False
        self._writer: asyncio.Task[None] | None = None
        self.project = project
        self.ends_at = ends_at
        self.spoke_at = now

    async def run(
        self, extra: list[tuple[bytes, bytes]], receive: Receive, joined: Callable[[], None]
    ) -> None:
        """Open the response, call `joined`, and return when the client left or all was sent."""
        head = [*HEADERS, *extra]
        await self._send({"type": "http.response.start", "status": 200, "headers": head})
        first = b"retry: %d\n\n" % RETRY_MS
        await self._send({"type": "http.response.body", "body": first, "more_body": True})
        joined()
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            self._left = True
            if self._writer is not None:
                self._writer.cancel()

    def changed(self, changes: Sequence[Change], version: int, unread: int) -> None:
        """Tell the client; the count goes once, after the changes it is the sum of."""
        self._put(b"".join(map(change_frame, changes)) + count_frame(version, unread), version)

    def reset(self, version: int, unread: int) -> None:
        """Tell the client to fetch the list."""
        self._put(reset_frame(version) + count_frame(version, unread), version)

    def ping(self) -> None:
        """Keep proxies from closing the connection, unless something is being written anyway."""
        if not self._queue:
            self._put(PING, 0)

    def end(self, last: bytes = b"") -> None:
        """Send what waits, then these bytes, then close."""
        if not self._ended:
            self._ended = True
            self._queue.append(last)
            self._wake()

    def _put(self, data: bytes, version: int) -> None:
        if self._ended or self._left:
            return
        if self._queued + len(data) > QUEUE_BYTES_MAX:
            self._queue.clear()
            self.end(reset_frame(version))
            return
        self._queue.append(data)
        self._queued += len(data)
        self._wake()

    def _wake(self) -> None:
        if self._writer is None and not self._left:
            self._writer = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._queue:
                data = b"".join(self._queue)
                self._queue.clear()
                self._queued = 0
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
            if self._ended:
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._writer = None
