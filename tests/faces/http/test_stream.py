"""One stream and a client that does not read."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.clock import START
from tocsin.domain.ids import uuid7
from tocsin.faces.http import sse
from tocsin.faces.http.sse import Stream, change_frame
from tocsin.service.inbox_feed import Change


def change(version: int, body: str | None = "x", data: str | None = "{}") -> Change:
    return Change(
        1, "ada", version, "new", uuid7(START), version, is_todo=False, subject=None, body=body,
        icon="bell", url=None, data=data, created_at=START,
    )  # fmt: skip


class Client:
    """Takes what is sent only while `reads` is set."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.reads = asyncio.Event()
        self.ended = asyncio.Event()

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        self.sent.append(message["body"])
        if not message["more_body"]:
            self.ended.set()


async def test_a_client_that_does_not_read_is_bounded_reset_and_closed() -> None:
    client = Client()
    stream = Stream(client.send, 1, 0.0, 0.0)
    big = "x" * 100_000
    for version in range(1, 40):
        stream.changed([change(version, big)], version, version)
        await asyncio.sleep(0)
        assert sum(map(len, stream._queue)) <= sse.QUEUE_BYTES_MAX
    client.reads.set()
    async with asyncio.timeout(5):
        await client.ended.wait()

    everything = b"".join(client.sent)
    last = everything.strip().rpartition(b"data: ")[2]
    assert b'"type":"reset"' in last
    assert len(everything) < 2 * sse.QUEUE_BYTES_MAX
    stream.changed([change(99)], 99, 99)
    assert stream._queue == []


async def test_what_comes_while_the_client_is_slow_is_sent_together() -> None:
    client = Client()
    stream = Stream(client.send, 1, 0.0, 0.0)
    for version in (1, 2, 3):
        stream.changed([change(version)], version, version)
        await asyncio.sleep(0)
    stream.end()
    client.reads.set()
    async with asyncio.timeout(5):
        await client.ended.wait()

    assert b"".join(client.sent).count(b"new_notification") == 3
    assert len(client.sent) <= 3


async def test_a_change_of_a_message_that_is_gone_is_only_counted() -> None:
    assert change_frame(change(4, body=None)) == b""


@given(st.text(max_size=200), st.dictionaries(st.text(max_size=5), st.text(max_size=50)))
def test_no_text_can_break_out_of_its_frame(body: str, data: dict[str, str]) -> None:
    try:
        body.encode()
        text = sse._encode(data).decode()
    except UnicodeEncodeError:
        return

    frame = change_frame(change(4, body, text))

    assert frame.startswith(b"id: 4\ndata: {")
    assert frame.endswith(b"}\n\n")
    assert frame.count(b"\n") == 3
    assert b"\r" not in frame
