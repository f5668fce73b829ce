"""What a mail may not say: custom headers, content types and content ids checked where they come in."""

import re
from collections.abc import Iterable

from tocsin.domain.errors import Invalid
from tocsin.wire.addresses import check_line
from tocsin.wire.mime.headers import STRUCTURED, check_atoms

MAX_HEADERS = 50
MAX_HEADER_NAME = 76
MAX_HEADER_VALUE = 8192
MAX_CONTENT_TYPE = 200
MAX_CONTENT_ID = 200

OWNED = {
    "from": "from_email and from_name",
    "to": "to",
    "cc": "cc",
    "reply-to": "reply_to",
    "subject": "subject",
}
"""Fields that the writer makes, and what sets them instead."""

_GENERATED = frozenset(
    {"bcc", "date", "message-id", "mime-version", "received", "return-path", "x-tocsin-job-id"}
)
_GENERATED_PREFIXES = ("content-", "resent-")
_NAME = re.compile(r"[!-9;-~]+")
_ATOM = r"[A-Za-z0-9!#$%&'*+.^_`{|}~-]+"
_CONTENT_TYPE = re.compile(
    rf'{_ATOM}/{_ATOM}(?: *; *{_ATOM}=(?:{_ATOM}|"[ !#-\[\]-~]*"))*', re.ASCII
)
_COMPOSITE = ("multipart/", "message/")
_CONTENT_ID = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+(?:@[A-Za-z0-9.-]+)?")


def check_headers(headers: Iterable[tuple[str, str]], field: str) -> None:
    """Custom header fields, as pairs: well named, one line each, none twice, none that the writer owns.

    Raises Invalid naming `field.<header>` (or `field` where the name itself is unfit to be repeated).
    """
    seen: set[str] = set()
    for name, value in headers:
        if len(name) > MAX_HEADER_NAME or not _NAME.fullmatch(name):
            raise Invalid(
                "invalid_header_name",
                f"{field} has a header name that RFC 5322 does not allow",
                remedy=f"Use at most {MAX_HEADER_NAME} visible ASCII characters, without a colon.",
                field=field,
            )
        here = f"{field}.{name}"
        key = name.lower()
        _refuse_owned(key, here)
        if key in seen:
            raise Invalid(
                "duplicate_header", f"{here} is given twice", remedy="Send it once.", field=here
            )
        seen.add(key)
        check_line(value, here)
        if len(value) > MAX_HEADER_VALUE:
            raise Invalid(
                "header_too_long",
                f"{here} is longer than {MAX_HEADER_VALUE} characters",
                remedy="Shorten it.",
                field=here,
            )
        if key in STRUCTURED:
            check_atoms(value, here)
    if len(seen) > MAX_HEADERS:
        raise Invalid(
            "too_many_headers",
            f"{field} has more than {MAX_HEADERS} headers",
            remedy="Send fewer.",
            field=field,
        )


def check_content_type(content_type: str, field: str) -> str:
    """`type/subtype` with parameters; never a composite type, whose bytes would be read as more parts."""
    if len(content_type) > MAX_CONTENT_TYPE or not _CONTENT_TYPE.fullmatch(content_type):
        raise Invalid(
            "invalid_content_type",
            f"{field} is not a content type",
            remedy="Write it as type/subtype, for example application/pdf.",
            field=field,
        )
    if content_type.lower().startswith(_COMPOSITE):
        raise Invalid(
            "composite_content_type",
            f"{field} is multipart/* or message/*, which cannot be attached as bytes",
            remedy="Attach it as application/octet-stream.",
            field=field,
        )
    return content_type


def check_content_id(content_id: str, field: str) -> str:
    """What stands behind `cid:` in the HTML: an atom, or one with a domain; no angle brackets."""
    if len(content_id) > MAX_CONTENT_ID or not _CONTENT_ID.fullmatch(content_id):
        raise Invalid(
            "invalid_content_id",
            f"{field} is not a content id",
            remedy="Use letters, digits, dots and dashes, without angle brackets.",
            field=field,
        )
    return content_id


def _refuse_owned(key: str, here: str) -> None:
    if key in OWNED:
        remedy = f"Set it with {OWNED[key]}."
    elif key in _GENERATED or key.startswith(_GENERATED_PREFIXES):
        remedy = "Leave it out; Tocsin or the mail server writes it where it belongs."
    else:
        return
    raise Invalid("reserved_header", f"{here} cannot be set by hand", remedy=remedy, field=here)
