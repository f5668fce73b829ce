"""The server over real sockets: bodies bounded early, a stop that cuts nobody off."""

import asyncio
from typing import Any

import pytest

from tests.faces.http.conftest import Api, Served
from tests.support.wire_client import exchange
from tocsin.faces.http import body, protocol
from tocsin.faces.http.server import listen, raise_open_files
from tocsin.service import subscribers

PATHS = ["/v1/send", "/v1/subscribers"]


@pytest.mark.parametrize("path", PATHS)
async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(
    api: Api, served: Served, path: str
) -> None:
    async with exchange(served.port) as opened:
        await opened.request(
            "POST", path, {"x-api-key": api.key, "content-length": str(body.BODY_BYTES_MAX + 1)}
        )

        assert opened.status == 413
        assert b"body_too_large" in await opened.body()
        assert await opened.ended()


@pytest.mark.parametrize("path", PATHS)
async def test_a_chunked_body_is_refused_as_soon_as_it_is_too_large(
    api: Api, served: Served, path: str
) -> None:
    part = b"%x\r\n%b\r\n" % (65_536, b" " * 65_536)
    async with exchange(served.port) as opened:
        head = f"POST {path} HTTP/1.1\r\nhost: t\r\nx-api-key: {api.key}\r\n"
        await opened.send(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        for _ in range(body.BODY_BYTES_MAX // 65_536 + 1):
            await opened.send(part)
        await opened.read_head()

        assert opened.status == 413


async def test_a_body_of_just_the_limit_is_read(api: Api, served: Served) -> None:
    text = b'{"id":"a"}'
    async with exchange(served.port) as opened:
        await opened.request(
            "POST", "/v1/subscribers", {"x-api-key": api.key},
            text + b" " * (body.BODY_BYTES_MAX - len(text)),
        )  # fmt: skip

        assert opened.status == 200


async def test_a_body_that_does_not_come_ends_the_wait(
    api: Api, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "BODY_TIMEOUT_S", 0.05)
    async with exchange(served.port) as opened:
        headers = f"host: t\r\nx-api-key: {api.key}\r\ncontent-length: 100\r\n\r\n"
        await opened.send(f"POST /v1/send HTTP/1.1\r\n{headers}{{".encode())
        await opened.read_head()

        assert opened.status == 408


async def test_what_is_no_http_is_a_problem_document(served: Served) -> None:
    async with exchange(served.port) as opened:
        await opened.send(b"NOT HTTP AT ALL\r\n\r\n")
        await opened.read_head()

        assert opened.status == 400
        assert opened.headers["content-type"] == "application/problem+json"
        assert b"malformed_http" in await opened.body()
        assert await opened.ended()


async def test_a_head_without_end_is_refused(served: Served) -> None:
    async with exchange(served.port) as opened:
        await opened.send(b"GET / HTTP/1.1\r\n")
        for number in range(20):
            await opened.send(b"x-%d: %b\r\n" % (number, b"a" * 4_000))
        await opened.read_head()

        assert opened.status == 431
        assert await opened.body()
        assert await opened.ended()


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nhost: "])
async def test_a_head_that_does_not_come_ends_the_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.05)
    async with exchange(served.port) as opened:
        await opened.send(begun)
        await opened.read_head()

        assert opened.status == 408
        assert b"head_timeout" in await opened.body()


async def test_a_second_head_that_does_not_come_ends_the_connection_too(
    api: Api, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with exchange(served.port) as opened:
        await opened.request("GET", "/v1/channels", {"x-api-key": api.key})
        await opened.body()
        monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.05)
        await opened.send(b"GET / HT")
        await opened.read_head()

        assert opened.status == 408


async def test_one_connection_serves_hot_and_framework_routes_in_turn(
    api: Api, served: Served
) -> None:
    async with exchange(served.port) as opened:
        for path, text, status in (
            ("/v1/send", b"{", 400), ("/v1/subscribers", b'{"id":"a"}', 200),
            ("/v1/send", b"{}", 422),
        ):  # fmt: skip
            await opened.request("POST", path, {"x-api-key": api.key}, text)
            assert opened.status == status
            await opened.body()


async def test_a_refused_request_does_not_spoil_the_next_on_its_connection(
    api: Api, served: Served
) -> None:
    async with exchange(served.port) as opened:
        await opened.request("POST", "/v1/send", {}, b'{"a": "POST / HTTP/1.1"}')
        assert opened.status == 401
        await opened.body()
        await opened.request("GET", "/v1/channels", {"x-api-key": api.key})
        assert opened.status == 200


async def test_a_stop_lets_requests_finish_and_takes_no_new_ones(
    api: Api, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()
    real = subscribers.read

    async def slow(*args: Any) -> Any:
        entered.set()
        await go_on.wait()
        return await real(*args)

    await api.acme.post("/v1/subscribers", {"id": "ada"})
    monkeypatch.setattr(subscribers, "read", slow)
    async with exchange(served.port) as opened:
        asking = asyncio.create_task(
            opened.request("GET", "/v1/subscribers/ada", {"x-api-key": api.key})
        )
        await entered.wait()
        served.stop.set()
        async with asyncio.timeout(10):
            while await connects(served.port):
                pass
        go_on.set()
        await asking

        assert opened.status == 200
        assert b'"ada"' in await opened.body()
        async with asyncio.timeout(10):
            await served.done


async def connects(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def test_a_busy_port_is_the_callers_to_decide() -> None:
    with listen("127.0.0.1", 0) as bound, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", bound.getsockname()[1])


def test_the_process_may_hold_as_many_connections_as_the_system_permits() -> None:
    assert raise_open_files() >= 1024
