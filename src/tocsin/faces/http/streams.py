"""Streams: every open event stream of this process; keeps them alive, ends them when it is time."""

import asyncio
import random
from typing import Final
from urllib.parse import parse_qs, unquote

import structlog

from tocsin.domain.errors import (
    Forbidden,
    Malformed,
    NotFound,
    RateLimited,
    TocsinError,
    Unauthenticated,
    Unavailable,
)
from tocsin.faces.http.exchange import Request, Scope, Send
from tocsin.faces.http.identity import Gate, InboxAccess, is_token
from tocsin.faces.http.sse import Stream, frame
from tocsin.service import inbox
from tocsin.service.app import App
from tocsin.service.inbox_feed import SWEEP_S, Feed

STREAMS_MAX: Final = 20_000
#: Of one inbox: a person's tabs and devices, not a leak in somebody's loop.
STREAMS_PER_INBOX_MAX: Final = 32
PING_S: Final = 30.0
ROUND_S: Final = 1.0
RETRY_AFTER_S: Final = 5
VERSION_DIGITS_MAX: Final = 18
SUBSCRIBER_ID_MAX: Final = 256

_log = structlog.get_logger()
_EXPIRED = frame(None, {"type": "token_expired"})


class Streams:
    """Owns the feed and a loop for pings, expiry and projects that are gone."""

    def __init__(
        self, app: App, gate: Gate, *, ping_s: float = PING_S, sweep_s: float = SWEEP_S
    ) -> None:
        self._app = app
        self._gate = gate
        self._ping_s = ping_s
        self._sweep_s = sweep_s
        self._feed = Feed(app, sweep_s=sweep_s)
        self._open: set[Stream] = set()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def start(self) -> None:
        self._feed.start()
        self._task = asyncio.create_task(self._run(), name="streams")

    def close(self) -> None:
        """End every stream now and take no new one: the first step of a shutdown."""
        self._closing = True
        for stream in tuple(self._open):
            stream.end()

    async def stop(self) -> None:
        """Stop the loops; the streams are closed."""
        self.close()
        await self._feed.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def serve(self, request: Request, send: Send, extra: list[tuple[bytes, bytes]]) -> None:
        """Answer GET /v1/inbox/{subscriber_id}/stream. Raises before anything is sent, or never."""
        subscriber_id = _subscriber(request.scope)
        query = parse_qs(str(request.scope["query_string"], "latin-1"), keep_blank_values=True)
        access = await self._access(request, query, subscriber_id)
        after = _after(request, query)
        number = access.project.number
        self._refuse_too_many(number, subscriber_id)
        clock = asyncio.get_running_loop().time
        until = access.until or self._app.clock.now() + inbox.STREAM_LASTS
        left_s = (until - self._app.clock.now()).total_seconds()
        # Apart from each other, so that ten thousand do not ping in one moment.
        spoke_at = clock() - random.random() * self._ping_s / 2
        stream = Stream(send, number, clock() + left_s, spoke_at)
        reader = None

        def join() -> None:
            nonlocal reader
            reader = self._feed.join(number, subscriber_id, after, stream)
            if self._closing:
                stream.end()

        self._open.add(stream)
        try:
            await stream.run(extra, request.receive, join)
        finally:
            self._open.discard(stream)
            if reader is not None:
                self._feed.leave(reader)

    def _refuse_too_many(self, number: int, subscriber_id: str) -> None:
        if self._closing or len(self._open) >= STREAMS_MAX:
            raise Unavailable(
                "too_many_streams",
                "This process has no room for another stream",
                remedy="try again after the time in Retry-After; the list works meanwhile",
                retry_after_s=RETRY_AFTER_S,
            )
        if self._feed.followed(number, subscriber_id) >= STREAMS_PER_INBOX_MAX:
            raise RateLimited(
                "too_many_streams_of_inbox",
                f"This inbox has {STREAMS_PER_INBOX_MAX} open streams",
                remedy="close some, or share one between tabs",
                retry_after_s=RETRY_AFTER_S,
            )

    async def _access(
        self, request: Request, query: dict[str, list[str]], subscriber_id: str
    ) -> InboxAccess:
        shown = (query.get("ticket") or query.get("token") or [""])[0]
        if not shown:
            return await self._gate.inbox(request.headers, subscriber_id)
        if is_token(shown):
            return await self._gate.token(shown, subscriber_id)
        ticket = await inbox.take_ticket(self._app, shown)
        project = None if ticket is None else await self._gate.ring.numbered(ticket.project)
        if ticket is None or project is None:
            raise Unauthenticated(
                "invalid_ticket",
                "Invalid or expired ticket",
                remedy="draw a new one with POST /v1/inbox/{subscriber_id}/stream-ticket",
            )
        if ticket.subscriber_id != subscriber_id:
            raise Forbidden(
                "ticket_subscriber_mismatch",
                "Ticket subscriber mismatch",
                remedy="use the ticket with the subscriber it was drawn for",
            )
        return InboxAccess(project, ticket.stream_until)

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        checked = clock()
        while True:
            await asyncio.sleep(min(ROUND_S, self._ping_s / 2))
            now = clock()
            for stream in tuple(self._open):
                if now >= stream.ends_at:
                    stream.end(_EXPIRED)
                elif now - stream.spoke_at >= self._ping_s:
                    stream.spoke_at = now
                    stream.ping()
            if now - checked >= self._sweep_s:
                checked = now
                await self._end_of_gone_projects()

    async def _end_of_gone_projects(self) -> None:
        for number in {stream.project for stream in self._open}:
            try:
                gone = await self._gate.ring.numbered(number) is None
            except TocsinError as error:
                _log.warning("streams.project_unknown", code=error.code)
                return
            for stream in tuple(self._open) if gone else ():
                if stream.project == number:
                    stream.end(_EXPIRED)


def is_stream(scope: Scope) -> bool:
    """Whether this is the path of an inbox's stream; slashes in the id are encoded."""
    path = _raw_path(scope)
    return path.startswith(b"/v1/inbox/") and path.endswith(b"/stream") and path.count(b"/") == 4


def _raw_path(scope: Scope) -> bytes:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw


def _subscriber(scope: Scope) -> str:
    subscriber_id = unquote(_raw_path(scope).split(b"/")[3].decode("latin-1"))
    if not 0 < len(subscriber_id) <= SUBSCRIBER_ID_MAX or "\0" in subscriber_id:
        raise NotFound("subscriber_not_found", "No subscriber has such an id", remedy="check it")
    return subscriber_id


def _after(request: Request, query: dict[str, list[str]]) -> int | None:
    text = request.header(b"last-event-id") or (query.get("last_event_id") or [""])[0]
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= VERSION_DIGITS_MAX):
        raise Malformed(
            "invalid_last_event_id",
            "Last-Event-ID is not a version of this inbox",
            remedy="leave it out to start from now",
            field="Last-Event-ID",
        )
    return int(text)
