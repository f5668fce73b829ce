"""Signed tokens pass for what they were made for, and for nothing else."""

import base64

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.wire import tokens
from tocsin.wire.tokens import InboxClaims, Unsubscribe

SECRET = b"s" * 32
INBOX = tokens.derive_key(SECRET, "inbox")
UNSUBSCRIBE = tokens.derive_key(SECRET, "unsubscribe")
CLAIMS = InboxClaims("ada", "acme", 7, 100, 200)
LINK = Unsubscribe(7, "email", "ada@example.com", 200)


def test_each_purpose_and_each_secret_has_a_key_of_its_own() -> None:
    keys = {INBOX, UNSUBSCRIBE, tokens.derive_key(b"t" * 32, "inbox"), SECRET}

    assert len(keys) == 4


def test_a_secret_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        tokens.derive_key(b"short", "inbox")


def test_an_inbox_token_says_what_was_signed_until_it_expires() -> None:
    token = tokens.sign_inbox(INBOX, CLAIMS)

    assert tokens.read_inbox(INBOX, token, 199.9) == CLAIMS
    assert tokens.read_inbox(INBOX, token, 200) is None


@pytest.mark.parametrize(
    "token",
    [
        tokens.sign_inbox(UNSUBSCRIBE, CLAIMS),
        jwt.encode({"sub": "ada", "aud": "notifyd:inbox", "exp": 200}, INBOX, algorithm="HS256"),
        jwt.encode({"sub": "ada", "aud": "tocsin:inbox", "exp": 200}, INBOX, algorithm="HS256"),
        jwt.encode({"sub": "ada", "project": "acme", "number": 7, "iat": 1, "exp": 200}, INBOX),
        jwt.encode(
            {"sub": "ada", "project": "acme", "number": 7, "iat": 1, "exp": 200,
             "aud": "tocsin:inbox"}, "", algorithm="none"
        ),
        "", "a.b.c", "..", "\ud800.\ud800.\ud800", "x" * 5_000,
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
def test_what_we_did_not_sign_for_this_is_no_inbox_token(token: str) -> None:
    assert tokens.read_inbox(INBOX, token, 150) is None


@given(
    st.builds(
        Unsubscribe,
        project=st.integers(1, 2**31 - 1),
        channel=st.sampled_from(["email", "sms"]),
        address=st.text(max_size=300),
        exp=st.integers(101, 2**40),
    )
)
def test_an_unsubscribe_token_reads_back_whatever_the_address_contains(link: Unsubscribe) -> None:
    try:
        link.address.encode()
    except UnicodeEncodeError:
        return
    token = tokens.sign_unsubscribe(UNSUBSCRIBE, link)

    assert tokens.read_unsubscribe(UNSUBSCRIBE, token, 100) == link
    assert tokens.read_unsubscribe(INBOX, token, 100) is None
    assert token.isascii()
    assert not set(token) & set("/+=|")


def test_an_unsubscribe_token_expires() -> None:
    token = tokens.sign_unsubscribe(UNSUBSCRIBE, LINK)

    assert tokens.read_unsubscribe(UNSUBSCRIBE, token, 200) is None


def test_no_bit_of_an_unsubscribe_token_can_be_changed() -> None:
    token = tokens.sign_unsubscribe(UNSUBSCRIBE, LINK)
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    for place in range(len(raw) * 8):
        changed = bytearray(raw)
        changed[place // 8] ^= 1 << place % 8
        forged = base64.urlsafe_b64encode(changed).rstrip(b"=").decode()
        assert tokens.read_unsubscribe(UNSUBSCRIBE, forged, 100) is None


@given(st.text(max_size=100))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert tokens.read_unsubscribe(UNSUBSCRIBE, text, 100) is None
    assert tokens.read_inbox(INBOX, text, 100) is None
