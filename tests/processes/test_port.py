"""A port is claimed when it is opened, and a refusal says what to do."""

import socket

import pytest

from tocsin.domain.errors import Conflict, TocsinError
from tocsin.processes.port import address_of, open_port, url_of


@pytest.fixture
def taken():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        yield held.getsockname()[1]


def test_a_port_that_is_taken_is_refused_unless_others_will_do(taken: int) -> None:
    with pytest.raises(Conflict) as refused:
        open_port("127.0.0.1", taken)
    assert (refused.value.code, "--port" in refused.value.remedy) == ("port_in_use", True)

    with open_port("127.0.0.1", taken, others=True) as next_free:
        assert address_of(next_free)[1] > 0
        assert address_of(next_free)[1] != taken


def test_two_that_open_at_once_never_share_a_port() -> None:
    with (
        open_port("127.0.0.1", 0) as one,
        open_port("127.0.0.1", address_of(one)[1], others=True) as other,
    ):
        assert address_of(one)[1] != address_of(other)[1]


def test_the_last_port_has_no_next_one_and_any_other_will_do() -> None:
    with (
        open_port("127.0.0.1", 65_535, others=True) as last,
        open_port("127.0.0.1", 65_535, others=True) as other,
    ):
        assert address_of(other)[1] not in (0, address_of(last)[1])


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_that_is_not_ours_is_refused_with_what_to_do(host: str) -> None:
    with pytest.raises(TocsinError) as refused:
        open_port(host, 0)

    assert refused.value.code == "address_not_ours"
    assert "--host" in refused.value.remedy


def test_the_url_of_every_address_is_one_that_a_browser_here_can_open() -> None:
    with open_port("0.0.0.0", 0) as everywhere, open_port("127.0.0.1", 0) as here:
        assert url_of(everywhere) == f"http://127.0.0.1:{address_of(everywhere)[1]}"
        assert url_of(here) == f"http://127.0.0.1:{address_of(here)[1]}"
