"""Email addresses: syntax at the boundary, A-labels on the wire, header injection refused.

Syntax: RFC 5321 §4.1.2 dot-atoms (quoted local parts and address literals are refused), RFC 6531 for non-ASCII.
"""

import re
from functools import lru_cache

from tocsin.domain.errors import Invalid
from tocsin.domain.message import Mailbox

MAX_ADDRESS = 254
MAX_LOCAL_OCTETS = 64
MAX_DOMAIN = 253
MAX_NAME = 200
DOMAIN_CACHE = 4096

_ATEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ASCII_LOCAL = re.compile(rf"{_ATEXT}(?:\.{_ATEXT})*")
_ASCII_DOMAIN = re.compile(rf"(?:{_LABEL}\.)*(?!\d+\Z){_LABEL}")
_ASCII_ADDRESS = re.compile(rf"{_ATEXT}(?:\.{_ATEXT})*@(?:{_LABEL}\.)*(?!\d+\Z){_LABEL}")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x80-\x9f\u2028\u2029\ud800-\udfff]")
_WITH_NAME = re.compile(r"\s*(?P<name>.*?)\s*<(?P<address>[^<>]*)>\s*", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def check_line(text: str, field: str) -> str:
    """`text` as it came; Invalid if it could end a header line or hide what follows."""
    if not text.isprintable() and _CONTROL.search(text):
        raise Invalid(
            "header_injection",
            f"{field} contains a line break or another control character",
            remedy=f"Send {field} as one line of text.",
            field=field,
        )
    return text


def check_address(address: str, field: str) -> str:
    """The address in its one stored form: domain in lower-case A-labels, local part in NFC, its case kept.

    Raises Invalid naming `field`; the error never repeats the address.
    """
    check_line(address, field)
    local, _, domain = address.rpartition("@")
    if "." in domain and len(address) <= MAX_ADDRESS and _ASCII_ADDRESS.fullmatch(address):
        if len(local) <= MAX_LOCAL_OCTETS and len(domain) <= MAX_DOMAIN:
            return f"{local}@{domain.lower()}"
    elif not address.isascii():
        return _check_international(address, field)
    raise _not_an_address(field)


def parse_mailbox(text: str, field: str) -> Mailbox:
    """`jane@example.com` or `Jane Doe <jane@example.com>` (RFC 5322 §3.4), checked."""
    check_line(text, field)
    match = _WITH_NAME.fullmatch(text)
    if match is None:
        return Mailbox(check_address(text.strip(), field))
    name = match["name"]
    if len(name) >= 2 and name[0] == name[-1] == '"':
        name = _ESCAPED.sub(r"\1", name[1:-1])
    elif "<" in name or ">" in name:
        raise _not_an_address(field)
    return Mailbox(check_address(match["address"].strip(), field), check_name(name, field) or None)


def check_name(name: str, field: str) -> str:
    """A display name of at most MAX_NAME characters, on one line."""
    if len(name) > MAX_NAME:
        raise Invalid(
            "name_too_long",
            f"{field} has a display name longer than {MAX_NAME} characters",
            remedy="Shorten the name.",
            field=field,
        )
    return check_line(name, field)


def wire_address(address: str, field: str) -> str:
    """The address as it stands in a header or an SMTP path: A-label domain, never anything that ends the path.

    Lenient where the relay may know better (a domain without a dot); non-ASCII only in the local part.
    """
    if len(address) <= MAX_ADDRESS and _ASCII_ADDRESS.fullmatch(address):
        return address
    local, _, domain = address.rpartition("@")
    known = to_ascii_domain(domain)
    if known is None or not _is_international_local(local):
        raise _not_an_address(field)
    if len(local.encode()) > MAX_LOCAL_OCTETS or len(local) + 1 + len(known) > MAX_ADDRESS:
        raise _not_an_address(field)
    return f"{local}@{known}"


@lru_cache(maxsize=DOMAIN_CACHE)
def to_ascii_domain(domain: str) -> str | None:
    """A domain in lower-case A-labels (IDNA 2008 with UTS 46 mapping), or None if it is none."""
    if domain.isascii():
        known = domain.lower()
    else:
        # Imported here: its tables cost 30 ms, and most processes never meet a non-ASCII domain.
        import idna  # noqa: PLC0415

        try:
            known = idna.encode(domain, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            return None
    return known if len(known) <= MAX_DOMAIN and _ASCII_DOMAIN.fullmatch(known) else None


def _is_international_local(local: str) -> bool:
    """An RFC 6531 dot-atom: every ASCII character an atext, everything else printable."""
    ascii_only = "".join(char if char.isascii() else "x" for char in local)
    return bool(_ASCII_LOCAL.fullmatch(ascii_only)) and local.isprintable()


def _check_international(address: str, field: str) -> str:
    # Imported here: 55 ms that only the first non-ASCII address pays.
    from email_validator import EmailNotValidError, validate_email  # noqa: PLC0415

    try:
        found = validate_email(address, check_deliverability=False)
    except EmailNotValidError:
        raise _not_an_address(field) from None
    if len(found.local_part.encode()) > MAX_LOCAL_OCTETS:
        raise _not_an_address(field)
    return f"{found.local_part}@{found.ascii_domain}"


def _not_an_address(field: str) -> Invalid:
    return Invalid(
        "invalid_address",
        f"{field} is not an email address",
        remedy="Write it as name@example.com, without spaces, quotes or a second @.",
        field=field,
    )
