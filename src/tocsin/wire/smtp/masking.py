"""What a server wrote, made fit to be kept: one short line without addresses."""

import re
from collections.abc import Iterable

DETAIL_MAX = 200
MASK = "[address]"
LOCAL_PART_MIN = 3
"""A shorter local part masks more words than it hides."""

_ADDRESS = re.compile(r"""(?:"[^"]*"|[^\s<>"'(),:;\[\]]+)\s*(?:@|=40|%40)\s*[^\s<>"'(),:;]+""")


def masked(text: str, addresses: Iterable[str]) -> str:
    """At most DETAIL_MAX characters of `text`; `addresses` are those that the server was told."""
    text = _ADDRESS.sub(MASK, text)
    for address in addresses:
        local = address.rpartition("@")[0]
        if len(local) >= LOCAL_PART_MIN:
            text = re.sub(rf"(?<!\w){re.escape(local)}(?!\w)", MASK, text, flags=re.IGNORECASE)
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= DETAIL_MAX else text[: DETAIL_MAX - 1] + "…"
