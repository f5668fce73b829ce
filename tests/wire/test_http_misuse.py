"""What the caller of the HTTP client got wrong is an error of the caller, never a provider's answer."""

from collections.abc import AsyncIterator

import pytest

from tocsin.wire.http import HttpClient

BOUND_S = 10.0


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    made = HttpClient(connect_timeout_s=0.3)
    yield made
    await made.aclose()


@pytest.mark.parametrize("url", ["", "ftp://localhost/", "http://", "http://a b/", "http://[::/"])
async def test_a_url_that_cannot_be_called_is_a_value_error(client, url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        await client.request("GET", url, headers={}, timeout_s=BOUND_S)


async def test_a_header_that_would_start_another_is_a_value_error(client) -> None:
    with pytest.raises(ValueError, match="header"):
        await client.request(
            "GET", "http://localhost/", headers={"a": "b\r\nc: d"}, timeout_s=BOUND_S
        )


async def test_a_closed_client_makes_no_call(client) -> None:
    await client.aclose()

    with pytest.raises(RuntimeError, match="closed"):
        await client.request("GET", "http://127.0.0.1:1/", headers={}, timeout_s=BOUND_S)
