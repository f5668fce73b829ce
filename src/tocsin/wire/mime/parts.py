"""Body parts: text in the transfer encoding it needs, attachments in base64, parts in a multipart.

Sources: RFC 2045 §6 (transfer encodings), RFC 2046 §5.1 (multipart), RFC 2183 (disposition), RFC 2387 (related).
"""

from binascii import b2a_base64, b2a_qp
from collections.abc import Sequence

from tocsin.domain.message import Attachment
from tocsin.wire.addresses import check_line
from tocsin.wire.mime.headers import HARD_LIMIT, parameter
from tocsin.wire.mime.refusals import check_content_id, check_content_type

BOUNDARY_MARK = "=_tocsin_"
"""No quoted-printable or base64 line can contain `=_`, and 7bit text that does is not sent as 7bit."""

BASE64_LINE = 76
DENSE = 6
"""Above one octet in DENSE outside ASCII, base64 is shorter than quoted-printable."""

_HIGH_OCTETS = bytes(range(0x80, 0x100))


def text_part(subtype: str, text: str) -> bytes:
    """`text/<subtype>` in UTF-8, every line ended by CRLF, the last one too, none over 998 octets."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.endswith("\n"):
        text += "\n"
    head = f"Content-Type: text/{subtype}; charset=utf-8\r\nContent-Transfer-Encoding: "
    if text.isascii() and "\0" not in text and BOUNDARY_MARK not in text and _lines_fit(text):
        return (head + "7bit\r\n\r\n" + text.replace("\n", "\r\n")).encode("ascii")
    raw = text.encode("utf-8", "replace")
    if len(raw) - len(raw.translate(None, _HIGH_OCTETS)) > len(raw) // DENSE:
        body = _base64(raw.replace(b"\n", b"\r\n"))
        return f"{head}base64\r\n\r\n".encode() + body
    body = b2a_qp(raw, quotetabs=False, istext=True).replace(b"\n", b"\r\n")
    return f"{head}quoted-printable\r\n\r\n".encode() + body


def attachment_part(attachment: Attachment, field: str) -> bytes:
    """One attachment; with a content id it is inline, for `cid:` links of the HTML beside it."""
    check_line(attachment.filename, f"{field}.filename")
    check_content_type(attachment.content_type, f"{field}.content_type")
    kind = "attachment"
    identity = ""
    if attachment.content_id:
        kind = "inline"
        identity = (
            f"Content-ID: <{check_content_id(attachment.content_id, f'{field}.content_id')}>\r\n"
        )
    name = parameter("filename", attachment.filename) if attachment.filename else ""
    head = (
        f"Content-Type: {attachment.content_type}\r\nContent-Transfer-Encoding: base64\r\n"
        f"{identity}Content-Disposition: {kind}{name}\r\n\r\n"
    )
    return head.encode("ascii") + _base64(attachment.content)


def multipart(subtype: str, boundary: str, parts: Sequence[bytes]) -> bytes:
    """`multipart/<subtype>` of at least one part, its own Content-Type field first."""
    kind = '; type="text/html"' if subtype == "related" else ""
    head = f'Content-Type: multipart/{subtype}{kind};\r\n boundary="{boundary}"\r\n\r\n'
    opening = f"--{boundary}\r\n"
    between = f"\r\n{opening}".encode("ascii")
    return b"".join(
        (
            (head + opening).encode("ascii"),
            between.join(parts),
            f"\r\n--{boundary}--\r\n".encode("ascii"),
        )
    )


def _lines_fit(text: str) -> bool:
    start = 0
    while len(text) - start > HARD_LIMIT:
        newline = text.rfind("\n", start, start + HARD_LIMIT + 1)
        if newline < 0:
            return False
        start = newline + 1
    return True


def _base64(raw: bytes) -> bytes:
    whole = b2a_base64(raw, newline=False)
    return b"".join(
        whole[start : start + BASE64_LINE] + b"\r\n" for start in range(0, len(whole), BASE64_LINE)
    )
