"""Where a provider's API is: refused where the account is configured, not when the first message goes out."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from tocsin.domain.errors import Invalid

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]+")
_PATH = re.compile(r"[A-Za-z0-9._~%/-]*")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def check_base_url(text: str, field: str) -> str:
    """`text` without a slash at its end: https://, or http:// to a simulator on this machine.

    Raises Invalid naming `field` for everything else: a key must not travel in the clear.
    """
    try:
        url = urlsplit(text)
        usable = _usable(url)
    except ValueError:
        usable = False
    if not usable:
        raise Invalid(
            "invalid_base_url",
            f"{field} is not the https:// address of an API",
            remedy="Leave it out, or write it as https://host/path; only this machine may be "
            "reached over http://.",
            field=field,
        )
    return text.rstrip("/")


def _usable(url: SplitResult) -> bool:
    host = url.hostname or ""
    secure = url.scheme == "https" or (url.scheme == "http" and host in _LOOPBACK)
    plain = not (url.username or url.password or url.query or url.fragment)
    # Reading `port` raises ValueError when it is none.
    named = bool(_HOST.fullmatch(host)) and url.port != 0
    return secure and plain and named and bool(_PATH.fullmatch(url.path))
