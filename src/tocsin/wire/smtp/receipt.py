"""The id under which a server took a mail, as far as its 250 names one."""

import re

from tocsin.wire.smtp.replies import Reply

RECEIPT_MAX = 128

# Postfix: "queued as 4XyZ"; Exim: "OK id=1tAbC-…"; Amazon SES: "Ok 0102018f…-000000".
_QUEUED = re.compile(
    rf"(?:queued as |\bid=|^(?:2\.\d\.\d )?ok:? )([A-Za-z0-9._-]{{8,{RECEIPT_MAX}}})(?:\s|;|$)",
    re.IGNORECASE,
)


def receipt(reply: Reply) -> str | None:
    """The queue id in the text of a 250, or None."""
    found = _QUEUED.search(reply.text)
    return found[1] if found else None
