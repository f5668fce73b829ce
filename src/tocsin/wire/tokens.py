"""Signed tokens: each purpose has its own key, derived from one secret, so none passes for another."""

import base64
import binascii
import hashlib
import hmac
from hashlib import blake2b
from typing import Final, Literal

import jwt
import msgspec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from msgspec import Struct

Purpose = Literal["inbox", "unsubscribe"]

INBOX_AUDIENCE: Final = "tocsin:inbox"
#: Longer than any token of ours; what is longer is not looked at.
TOKEN_MAX: Final = 4_096
#: Of a secret that Tocsin makes, and of one that an operator chose.
SECRET_BYTES_MIN: Final = 32
CHOSEN_BYTES_MIN: Final = 16
_KEY_BYTES: Final = 32
_MAC_BYTES: Final = 16


class InboxClaims(Struct, frozen=True):
    """A subscriber token (RFC 7519). number: the project's, so that a new project of the same id is another."""

    sub: str
    project: str
    number: int
    iat: int
    exp: int
    aud: str = INBOX_AUDIENCE


class Unsubscribe(Struct, frozen=True, array_like=True):
    """What a link in a message's footer says: no more of this to this address. exp: epoch seconds."""

    project: int
    channel: str
    address: str
    exp: int


def derive_key(secret: bytes, purpose: Purpose) -> bytes:
    """The 32-byte key of one purpose (HKDF-SHA256, RFC 5869 §2.3)."""
    if len(secret) < CHOSEN_BYTES_MIN:
        raise ValueError(f"the signing secret needs at least {CHOSEN_BYTES_MIN} bytes")
    info = f"tocsin {purpose} v1".encode()
    return HKDFExpand(algorithm=SHA256(), length=_KEY_BYTES, info=info).derive(
        hashlib.sha256(secret).digest()
    )


def sign_inbox(key: bytes, claims: InboxClaims) -> str:
    """A JWT (HS256) for one subscriber's inbox."""
    return jwt.encode(msgspec.to_builtins(claims), key, algorithm="HS256")


def read_inbox(key: bytes, token: str, now: float) -> InboxClaims | None:
    """The claims of a token that we signed and that has not expired; now: epoch seconds."""
    if len(token) > TOKEN_MAX:
        return None
    try:
        payload = jwt.decode(
            token,
            key,
            algorithms=["HS256"],
            audience=INBOX_AUDIENCE,
            options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
        claims = msgspec.convert(payload, InboxClaims)
    except (jwt.InvalidTokenError, msgspec.ValidationError, ValueError):
        return None
    return claims if claims.exp > now else None


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Unsubscribe)


def sign_unsubscribe(key: bytes, link: Unsubscribe) -> str:
    """A token for a URL path: the link's fields and a 128-bit MAC (keyed BLAKE2b, RFC 7693), in base64url
    without padding. A campaign signs one for each recipient: HMAC-SHA256 takes four times as long.
    """
    payload = _encode(link)
    mac = blake2b(payload, digest_size=_MAC_BYTES, key=key).digest()
    return base64.urlsafe_b64encode(mac + payload).rstrip(b"=").decode()


def read_unsubscribe(key: bytes, token: str, now: float) -> Unsubscribe | None:
    """The link of a token that we signed and that has not expired; now: epoch seconds."""
    if len(token) > TOKEN_MAX or not token.isascii():
        return None
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    mac, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not hmac.compare_digest(blake2b(payload, digest_size=_MAC_BYTES, key=key).digest(), mac):
        return None
    try:
        link = _decoder.decode(payload)
    except msgspec.MsgspecError:
        return None
    return link if link.exp > now else None
