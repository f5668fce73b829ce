"""Bodies: read up to a limit and within a time, refused early, never half understood."""

import asyncio
import re
from typing import Any, Final, TypeVar

import msgspec

from tocsin.domain.errors import Invalid, TooLarge
from tocsin.faces.http.exchange import Message, Receive, Request
from tocsin.faces.http.problems import (
    RequestTimeout,
    UnsupportedMediaType,
    invalid_json,
    malformed_json,
)

BODY_BYTES_MAX: Final = 5 * 1024 * 1024
BODY_TIMEOUT_S: Final = 30.0
#: What mail programs and browsers post to is not JSON.
FORM_PATHS: Final = "/u/"

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
T = TypeVar("T")


class Disconnected(Exception):
    """The client left before its request was whole; nobody waits for an answer."""


def _too_large() -> TooLarge:
    return TooLarge(
        "body_too_large",
        f"The body is larger than {BODY_BYTES_MAX // 1024 // 1024} MiB",
        remedy="send less at once; a batch may be split into several calls",
    )


async def read_body(request: Request) -> bytes:
    """The whole body. Raises TooLarge before it is read when its length says so, else on the way."""
    length = request.header(b"content-length")
    if length is not None and length.isdecimal() and int(length) > BODY_BYTES_MAX:
        raise _too_large()
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise Disconnected
    first: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(first) > BODY_BYTES_MAX:
            raise _too_large()
        return first
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await _rest(request.receive, first)
    except TimeoutError:
        raise RequestTimeout(
            "body_timeout",
            f"The body did not arrive within {BODY_TIMEOUT_S:.0f} seconds",
            remedy="send it again",
        ) from None


async def _rest(receive: Receive, first: bytes) -> bytes:
    parts, size, more = [first], len(first), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > BODY_BYTES_MAX:
            raise _too_large()
        more = message.get("more_body", False)
    return b"".join(parts)


def check_json(request: Request, body: bytes) -> None:
    """Refuse what is labelled as something else, and text that PostgreSQL cannot keep."""
    if not body:
        return
    label = request.header(b"content-type")
    if label is not None:
        kind = label.partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise UnsupportedMediaType(
                "unsupported_media_type",
                "The body must be JSON",
                remedy="send the header Content-Type: application/json",
            )
    if b"\\u0000" in body and _NUL.search(body):
        raise Invalid(
            "nul_character",
            "The body contains the character U+0000",
            remedy="leave it out: PostgreSQL keeps every character but this one",
        )


def decode(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """A body as the decoder's type. Raises Malformed or Invalid with the field's path."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise invalid_json(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise malformed_json() from None


def checked(request: Request) -> Receive:
    """A receive for the framework: the whole body at once, read and checked when it is asked for."""
    given = False

    async def whole() -> Message:
        nonlocal given
        if given:
            return await request.receive()
        given = True
        body = await read_body(request)
        if not request.scope["path"].startswith(FORM_PATHS):
            check_json(request, body)
        message: dict[str, Any] = {"type": "http.request", "body": body, "more_body": False}
        return message

    return whole
