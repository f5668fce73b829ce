"""Sockets that misbehave in every way there is: which of it may be tried again, and which is unknown."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.certificates import make_authority
from tocsin.wire.http import HttpClient, NoAnswer, Reply, Unreachable

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
Exchange = Callable[[Reader, Writer], Awaitable[None]]

BOUND_S = 10.0
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@asynccontextmanager
async def server(exchange: Exchange, **tls) -> AsyncIterator[int]:
    """A server that handles each connection with `exchange`; yields its port."""

    open_now: set[Writer] = set()

    async def handle(reader: Reader, writer: Writer) -> None:
        open_now.add(writer)
        try:
            await exchange(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    running = await asyncio.start_server(handle, "127.0.0.1", 0, **tls)
    async with running:
        yield running.sockets[0].getsockname()[1]
        running.close()
        for writer in open_now:  # From 3.12 on leaving waits for idle connections too.
            writer.transport.abort()


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    made = HttpClient(connect_timeout_s=0.3)
    yield made
    await made.aclose()


async def head_of(reader: Reader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


async def post(client: HttpClient, port: int, *, tls: bool = False, timeout_s: float = BOUND_S):
    scheme = "https" if tls else "http"
    url = f"{scheme}://localhost:{port}/emails" if tls else f"{scheme}://127.0.0.1:{port}/emails"
    return await client.request("POST", url, headers={"x-a": "1"}, body=b"{}", timeout_s=timeout_s)


def reset(writer: Writer) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def answers(raw: bytes) -> Exchange:
    async def exchange(reader: Reader, writer: Writer) -> None:
        await head_of(reader)
        writer.write(raw)
        await writer.drain()
        await reader.read()

    return exchange


# ------------------------------------------------------------------------------ it answers


async def test_a_reply_has_status_headers_in_any_case_and_body(client) -> None:
    raw = (
        b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nVary: a\r\nVary: b\r\ncontent-length: 2\r\n\r\nno"
    )
    async with server(answers(raw)) as port:
        reply = await post(client, port)

    assert isinstance(reply, Reply)
    assert (reply.status, reply.body, reply.complete) == (429, b"no", True)
    assert reply.header("RETRY-AFTER") == "7"
    assert reply.header("vary") == "a, b"
    assert reply.header("absent") is None


async def test_the_user_agent_is_always_sent_and_the_callers_headers_and_body_arrive(
    client,
) -> None:
    seen: list[bytes] = []

    async def exchange(reader: Reader, writer: Writer) -> None:
        seen.append(await head_of(reader) + await reader.readexactly(2))
        writer.write(OK)
        await reader.read()

    async with server(exchange) as port:
        await post(client, port)

    head = seen[0].lower()
    assert head.startswith(b"post /emails http/1.1\r\n")
    assert b"\r\nuser-agent: tocsin/" in head
    assert b"\r\nx-a: 1\r\n" in head
    assert head.endswith(b"\r\n\r\n{}")


async def test_a_connection_serves_one_request_after_the_other(client) -> None:
    connections: list[Writer] = []

    async def exchange(reader: Reader, writer: Writer) -> None:
        connections.append(writer)
        while True:
            await head_of(reader)
            await reader.readexactly(2)
            writer.write(OK)

    async with server(exchange) as port:
        replies = [await post(client, port) for _ in range(5)]

    assert [reply.body for reply in replies] == [b"ok"] * 5
    assert len(connections) == 1


async def test_a_redirect_is_an_answer_and_is_not_followed(client) -> None:
    raw = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    async with server(answers(raw)) as port:
        reply = await post(client, port)

    assert (reply.status, reply.header("location")) == (302, "http://127.0.0.1:1/")


async def test_a_body_without_a_length_is_read_to_its_end(client) -> None:
    raw = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    async with server(answers(raw)) as port:
        reply = await post(client, port)

    assert reply.body == b"abcde"


@pytest.mark.parametrize("framing", ["content-length: 5000", "connection: close"])
async def test_a_body_over_the_limit_is_cut_and_said_to_be(framing: str) -> None:
    client = HttpClient(reply_body_max=1000)
    raw = f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode() + b"x" * 5000
    async with server(answers(raw)) as port:
        reply = await post(client, port)
    await client.aclose()

    assert (reply.status, reply.body, reply.complete) == (200, b"x" * 1000, False)


# ------------------------------------------------------------------------------ nothing left


async def test_a_refused_connection_is_unreachable(client) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))

        assert await post(client, bound.getsockname()[1]) == Unreachable("refused")


async def test_a_host_that_does_not_resolve_is_unreachable(client) -> None:
    failure = await client.request(
        "POST", "http://no-such-host.invalid/", headers={}, timeout_s=BOUND_S
    )

    assert failure in (Unreachable("dns"), Unreachable("connect_timeout"))


async def test_a_full_backlog_is_unreachable_after_the_connect_timeout_alone(client) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        try:
            assert await post(client, port) == Unreachable("connect_timeout")
        finally:
            for each in waiting:
                each.close()


async def test_an_untrusted_certificate_is_unreachable(client, tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    async with server(answers(OK), ssl=authority.server()) as port:
        assert await post(client, port, tls=True) == Unreachable("tls")


async def test_an_expired_certificate_is_unreachable(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, expired=True)
    client = HttpClient(ca_pem=authority.ca_pem)
    async with server(answers(OK), ssl=authority.server()) as port:
        assert await post(client, port, tls=True) == Unreachable("tls")
    await client.aclose()


async def test_a_server_that_speaks_no_tls_is_unreachable(client) -> None:
    async def exchange(reader: Reader, writer: Writer) -> None:
        await reader.read(1)
        writer.write(b"220 mail.example.com ESMTP\r\n")
        await reader.read()

    async with server(exchange) as port:
        failure = await post(client, port, tls=True)

    assert isinstance(failure, Unreachable)


async def test_a_reset_during_the_tls_handshake_is_unreachable(client) -> None:
    async def exchange(reader: Reader, writer: Writer) -> None:
        await reader.read(1)
        reset(writer)

    async with server(exchange) as port:
        assert isinstance(await post(client, port, tls=True), Unreachable)


async def test_a_reset_at_once_meets_the_connection_or_the_request_and_is_told_apart(
    client,
) -> None:
    async def exchange(reader: Reader, writer: Writer) -> None:
        reset(writer)

    async with server(exchange) as port:
        ends = [await post(client, port) for _ in range(20)]

    assert set(ends) <= {Unreachable("unreachable"), NoAnswer("reset")}


async def test_a_tls_handshake_without_end_is_unreachable(client) -> None:
    async def exchange(reader: Reader, writer: Writer) -> None:
        await reader.read()

    async with server(exchange) as port:
        assert await post(client, port, tls=True) == Unreachable("connect_timeout")


# ------------------------------------------------------------------------------ something may have


async def test_silence_after_the_request_is_no_answer_and_ends_the_connection(client) -> None:
    gone = asyncio.Event()

    async def exchange(reader: Reader, writer: Writer) -> None:
        await reader.read(-1)
        gone.set()

    async with server(exchange) as port:
        assert await post(client, port, timeout_s=0.2) == NoAnswer("timeout")
        await asyncio.wait_for(gone.wait(), BOUND_S)


async def test_a_timeout_while_still_connecting_is_no_answer_because_nobody_knows() -> None:
    client = HttpClient(connect_timeout_s=BOUND_S)

    async def exchange(reader: Reader, writer: Writer) -> None:
        await reader.read()

    async with server(exchange) as port:
        assert await post(client, port, tls=True, timeout_s=0.1) == NoAnswer("timeout")
    await client.aclose()


@pytest.mark.parametrize("read", [1, 10])
async def test_a_reset_after_the_first_byte_is_no_answer(client, read: int) -> None:
    async def exchange(reader: Reader, writer: Writer) -> None:
        await reader.read(read)
        reset(writer)

    async with server(exchange) as port:
        assert await post(client, port) == NoAnswer("reset")


async def test_a_reset_in_the_middle_of_a_large_request_is_no_answer(client) -> None:
    async def exchange(reader: Reader, writer: Writer) -> None:
        await reader.readexactly(100_000)
        reset(writer)

    async with server(exchange) as port:
        failure = await client.request(
            "POST",
            f"http://127.0.0.1:{port}/",
            headers={},
            body=b"x" * 20_000_000,
            timeout_s=BOUND_S,
        )

    assert isinstance(failure, NoAnswer)


async def test_a_connection_closed_instead_of_an_answer_is_no_answer(client) -> None:
    async def exchange(reader: Reader, writer: Writer) -> None:
        await head_of(reader)
        await reader.readexactly(2)
        writer.close()

    async with server(exchange) as port:
        assert isinstance(await post(client, port), NoAnswer)


async def test_what_is_not_http_is_no_answer(client) -> None:
    async with server(answers(b"550 no such user\r\n\r\n")) as port:
        assert await post(client, port) == NoAnswer("broken_reply")


async def test_a_body_that_ends_early_is_no_answer_with_its_status(client) -> None:
    async def exchange(reader: Reader, writer: Writer) -> None:
        await head_of(reader)
        await reader.readexactly(2)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc")
        writer.close()
        await writer.wait_closed()

    async with server(exchange) as port:
        assert await post(client, port) == NoAnswer("broken_reply", status=200)


async def test_a_body_that_never_ends_is_no_answer_with_its_status(client) -> None:
    raw = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc"
    async with server(answers(raw)) as port:
        assert await post(client, port, timeout_s=0.3) == NoAnswer("timeout", status=200)


# ------------------------------------------------------------------------------ HTTP/2


async def one_h2_answer(reader: Reader, writer: Writer) -> None:
    """A server's side of RFC 9113 for one request: settings, then `:status 200` and a body."""
    await reader.readexactly(24)
    writer.write(bytes(3) + b"\x04\x00" + bytes(4))
    while True:
        head = await reader.readexactly(9)
        payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        if kind == 4 and not flags & 1:
            writer.write(bytes(3) + b"\x04\x01" + bytes(4))
        if kind in (0, 1) and flags & 1:
            number = stream.to_bytes(4, "big")
            # HPACK: 0x88 is the static table's `:status: 200`.
            writer.write(b"\x00\x00\x01\x01\x04" + number + b"\x88")
            writer.write(b"\x00\x00\x02\x00\x01" + number + b"h2")
            assert payload == b"{}" or kind == 1


async def test_http2_is_spoken_where_the_server_offers_it(tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    client = HttpClient(ca_pem=authority.ca_pem)
    spoken: list[str | None] = []

    async def exchange(reader: Reader, writer: Writer) -> None:
        spoken.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        await one_h2_answer(reader, writer)

    async with server(exchange, ssl=authority.server("h2", "http/1.1")) as port:
        replies = await asyncio.gather(*(post(client, port, tls=True) for _ in range(3)))
    await client.aclose()

    assert {(reply.status, reply.body) for reply in replies} == {(200, b"h2")}
    assert set(spoken) == {"h2"}


async def test_http1_is_spoken_over_tls_where_the_server_offers_nothing_else(
    tmp_path: Path,
) -> None:
    authority = make_authority(tmp_path)
    client = HttpClient(ca_pem=authority.ca_pem)
    async with server(answers(OK), ssl=authority.server()) as port:
        reply = await post(client, port, tls=True)
    await client.aclose()

    assert reply == Reply(200, {"content-length": "2"}, b"ok")
