"""What Resend takes and what it refuses, with its names and in its words: the rules of the simulator.

Source: resend.com/docs/api-reference/errors and emails/send-email. Addresses end in one of the ways Resend names.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

RECIPIENTS_MAX = 50
KEY_MAX = 256
LABEL_MAX = 256

_ADDRESS = re.compile(r"[!-~]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_NAMED = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^<>"]*)\s*<([^<>]+)>')
_LABEL = re.compile(r"[A-Za-z0-9_-]+")
_FORM = "The email address needs to follow the `email@example.com` or `Name <email@example.com>` format."


class Problem(Struct, frozen=True):
    """Resend's error: `name` and `message` as in its documentation."""

    status: int
    name: str
    message: str


def refusal_of(mail: Any, *, unverified: frozenset[str], batch: bool) -> Problem | None:
    """Why Resend refuses this mail; None when it takes it. unverified: sender domains it knows nothing of."""
    if not isinstance(mail, Mapping):
        return Problem(422, "validation_error", "The email must be an object.")
    for field in ("from", "to", "subject"):
        if not mail.get(field):
            return Problem(422, "missing_required_field", f"Missing `{field}` field.")
    if not any(mail.get(field) for field in ("html", "text", "template")):
        return Problem(422, "missing_required_field", "Missing `html` or `text` field.")
    return _addresses(mail, unverified) or _rest(mail, batch=batch)


def recipients_of(mail: Mapping[str, Any]) -> int:
    """How many mails of the quota this one costs: every to, cc and bcc counts."""
    return sum(len(_listed(mail.get(field))) for field in ("to", "cc", "bcc"))


def tags_of(mail: Mapping[str, Any]) -> dict[str, str]:
    return {tag["name"]: tag["value"] for tag in mail.get("tags") or ()}


def _addresses(mail: Mapping[str, Any], unverified: frozenset[str]) -> Problem | None:
    for field in ("from", "to", "cc", "bcc", "reply_to"):
        boxes = _listed(mail.get(field))
        if len(boxes) > RECIPIENTS_MAX:
            text = f"Invalid `{field}` field. At most {RECIPIENTS_MAX} addresses are allowed."
            return Problem(422, "validation_error", text)
        if not all(_address(box) for box in boxes):
            return Problem(422, "validation_error", f"Invalid `{field}` field. {_FORM}")
    domain = (_address(mail["from"]) or "").rpartition("@")[2].lower()
    if domain in unverified:
        text = f"The {domain} domain is not verified. Please, add and verify your domain."
        return Problem(403, "validation_error", text)
    return None


def _rest(mail: Mapping[str, Any], *, batch: bool) -> Problem | None:
    headers = mail.get("headers") or {}
    if not isinstance(headers, Mapping) or not all(isinstance(v, str) for v in headers.values()):
        return Problem(422, "invalid_parameter", "Invalid `headers` field. Values must be strings.")
    for tag in mail.get("tags") or ():
        if not isinstance(tag, Mapping) or not all(_label(tag.get(k)) for k in ("name", "value")):
            text = "Tags should only contain ASCII letters, numbers, underscores, or dashes."
            return Problem(422, "validation_error", text)
    if mail.get("attachments") and batch:
        text = "The `attachments` field is not supported in a batch."
        return Problem(422, "validation_error", text)
    return None


def _listed(value: Any) -> list[Any]:
    if not value:
        return []
    return value if isinstance(value, list) else [value]


def _address(box: Any) -> str | None:
    if not isinstance(box, str):
        return None
    named = _NAMED.fullmatch(box.strip())
    address = named[1] if named else box.strip()
    return address if _ADDRESS.fullmatch(address) else None


def _label(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= LABEL_MAX and bool(_LABEL.fullmatch(text))
