"""Head and body leave together, and nothing is held longer than a turn of the loop."""

import asyncio

from tocsin.faces.http.joined import JoinedTransport

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Inner:
    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, _: str) -> None:
        return None


async def test_a_head_and_the_body_after_it_are_written_at_once() -> None:
    inner = Inner()
    transport = JoinedTransport(inner)
    transport.write(HEAD)
    transport.write(b"body")
    transport.write(b"more")
    await asyncio.sleep(0)

    assert inner.written == [HEAD + b"body", b"more"]


async def test_a_head_alone_leaves_in_the_next_turn() -> None:
    inner = Inner()
    JoinedTransport(inner).write(HEAD)
    assert inner.written == []
    await asyncio.sleep(0)

    assert inner.written == [HEAD]


async def test_closing_sends_what_is_held_and_aborting_does_not() -> None:
    closed, aborted = Inner(), Inner()
    for inner, end in ((closed, "close"), (aborted, "abort")):
        transport = JoinedTransport(inner)
        transport.write(HEAD)
        getattr(transport, end)()
    await asyncio.sleep(0)

    assert (closed.written, aborted.written) == ([HEAD], [])
