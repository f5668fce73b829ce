"""The demo's event stream client reads what a server cuts wherever it likes."""

import asyncio
from collections.abc import Sequence

import pytest

from tocsin.faces.cli.demo import live
from tocsin.faces.cli.demo.missed import Missed

EVENTS = (
    b'retry: 2000\n\n: ping\n\nid: 1\ndata: {"type":"new_notification","n":1}\n\n'
    b'data: {"type":"count_update","unread_count":1}\n\n'
)
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def heard(head: bytes, chunks: Sequence[bytes], *kinds: str) -> tuple[list[dict], bytes]:
    """The events of those types, and what was asked."""
    asked = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        for chunk in chunks:
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with live.listening(f"http://127.0.0.1:{port}", "a/b", "t+1") as stream:
            return [await stream.event(kind) for kind in kinds], asked


@pytest.mark.parametrize("size", [1, 7, len(EVENTS)])
async def test_events_come_out_whole_however_they_are_cut(size: int) -> None:
    chunks = [EVENTS[at : at + size] for at in range(0, len(EVENTS), size)]

    events, asked = await heard(HEAD, chunks, "new_notification", "count_update")

    assert [event.get("n", event.get("unread_count")) for event in events] == [1, 1]
    assert asked.startswith(b"GET /v1/inbox/a%2Fb/stream?ticket=t%2B1 HTTP/1.1\r\n")


async def test_other_events_are_passed_over() -> None:
    events, _ = await heard(HEAD, [EVENTS], "count_update")

    assert events[0]["unread_count"] == 1


async def test_a_stream_that_ends_without_the_event_is_missed() -> None:
    with pytest.raises(Missed, match="no read_all event"):
        await heard(HEAD, [EVENTS], "read_all")


async def test_a_refused_stream_is_missed_with_its_status() -> None:
    with pytest.raises(Missed, match="401 Unauthorized"):
        await heard(b"HTTP/1.1 401 Unauthorized\r\n\r\n", [], "new_notification")
