"""Problem documents (RFC 9457): what every error looks like, whoever raised it."""

import re
import traceback
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
import structlog
from litestar.exceptions import HTTPException, MethodNotAllowedException, ValidationException

from tocsin.domain.errors import Invalid, Malformed, NotFound, TocsinError, TooLarge
from tocsin.faces.http.exchange import Answer

MEDIA_TYPE: Final = "application/problem+json"
REALM: Final = 'Bearer realm="tocsin"'
#: The body was not read to its end, so the connection is of no more use.
_UNREAD: Final = (408, 413)
#: What a handler cannot say in more detail is cut here.
DETAIL_MAX: Final = 500
FRAMES_MAX: Final = -20

#: What Litestar says when a handler wants a body and there is none.
_NO_BODY: Final = "'data'"
_QUOTED = re.compile(r"Invalid (?:enum )?value .*", re.DOTALL)
_PATH = re.compile(r" - at `\$\.?([^`]*)`\Z")
_log = structlog.get_logger()


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """`error` is notifyd's member; `code` is stable; `remedy` says what to do now."""

    type: str
    title: str
    status: int
    detail: str
    error: str
    code: str
    request_id: str
    remedy: str = ""
    field: str | None = None


class MethodNotAllowed(TocsinError):
    status = 405


class RequestTimeout(TocsinError):
    status = 408


class UnsupportedMediaType(TocsinError):
    status = 415


def _without_values(message: str) -> str:
    """What msgspec says of a type, less the path and less the value it may quote."""
    return _QUOTED.sub("Not one of the allowed values", _PATH.sub("", message))[:DETAIL_MAX]


def invalid_json(error: msgspec.ValidationError) -> Invalid:
    """A body that is JSON but not what is asked for; the message names types, never values."""
    text = str(error)
    match = _PATH.search(text)
    return Invalid(
        "validation_failed",
        _without_values(text),
        remedy="compare the body with /openapi.json",
        field=match[1] if match else None,
    )


def malformed_json() -> Malformed:
    """A body that is no JSON, or nested too deeply to be read."""
    return Malformed(
        "malformed_json",
        "The body is not valid JSON",
        remedy="send one JSON object, in UTF-8",
    )


def told(error: Exception) -> TocsinError | None:
    """The error a caller may see; None for what is a defect of ours."""
    match error:
        case TocsinError(status=500):
            return None
        case TocsinError():
            return error
        case ValidationException():
            return _validation(error)
        case MethodNotAllowedException():
            return MethodNotAllowed(
                "method_not_allowed",
                "This path does not take this method",
                remedy="see /docs, or the Allow header",
            )
        case HTTPException(status_code=404):
            return NotFound("route_not_found", "There is nothing at this path", remedy="see /docs")
        case HTTPException(status_code=413):
            return TooLarge("body_too_large", "The body is too large", remedy="send less at once")
        case HTTPException(status_code=400):
            return malformed_json()
        case HTTPException() if error.status_code < 500:
            plain = TocsinError("request_refused", HTTPStatus(error.status_code).phrase)
            plain.status = error.status_code
            return plain
        case _:
            return None


def _validation(error: ValidationException) -> TocsinError:
    """Litestar's list of what did not fit; the first is told, with its place."""
    extra = error.extra if isinstance(error.extra, list) else []
    first: Mapping[str, Any] = extra[0] if extra and isinstance(extra[0], Mapping) else {}
    message = str(first.get("message", "The request does not fit"))
    if message == _NO_BODY:
        return malformed_json()
    key = str(first.get("key", "")).removeprefix("data.")
    inner = _PATH.search(message)
    path = ".".join(part for part in (key, inner[1] if inner else "") if part and part != "data")
    return Invalid(
        "validation_failed",
        _without_values(message),
        remedy="compare the request with /openapi.json",
        field=path or None,
    )


def answer(error: Exception, request_id: str) -> Answer:
    """The problem document of an error; a defect of ours is logged here and told without detail."""
    known = told(error)
    if known is None:
        # Frames and names only: an exception's own text may quote what was in the request.
        frames = [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__, FRAMES_MAX)
        ]
        _log.error("http.failed", request_id=request_id, error=type(error).__name__, frames=frames)
        known = TocsinError(
            "internal_error",
            "Internal server error",
            remedy="try again; if it lasts, report the request_id",
        )
    title = HTTPStatus(known.status).phrase
    problem = Problem(
        type=f"urn:tocsin:problem:{known.code}",
        title=title,
        status=known.status,
        detail=known.detail,
        error=known.detail,
        code=known.code,
        request_id=request_id,
        remedy=known.remedy,
        field=known.field,
    )
    body = (
        msgspec.to_builtins(problem)
        | {
            name: value
            for name, value in known.extra.items()
            if name not in Problem.__struct_fields__
        }
        | ({"error": known.extra["error"]} if "error" in known.extra else {})
    )
    headers = [("content-type", MEDIA_TYPE), ("cache-control", "no-store")]
    if known.retry_after_s is not None:
        headers.append(("retry-after", str(known.retry_after_s)))
    if known.status in _UNREAD:
        headers.append(("connection", "close"))
    if known.status == 401:
        headers.append(("www-authenticate", REALM))
    if isinstance(error, MethodNotAllowedException) and error.headers:
        headers += [(k.lower(), v) for k, v in error.headers.items() if k.lower() == "allow"]
    headers += _rate_headers(known)
    return Answer(known.status, msgspec.json.encode(body), tuple(headers))


def _rate_headers(error: TocsinError) -> list[tuple[str, str]]:
    """What is known of the limit (draft-ietf-httpapi-ratelimit-headers-06)."""
    if "limit_per_min" not in error.extra:
        return []
    return [
        ("ratelimit-limit", str(error.extra["limit_per_min"])),
        ("ratelimit-remaining", "0"),
        ("ratelimit-reset", str(error.retry_after_s)),
    ]
