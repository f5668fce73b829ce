"""Header fields as they stand on the wire: folded lines, encoded words, address lists, parameters.

Sources: RFC 5322 §2.2.3 (folding) and §3.4 (addresses), RFC 2047 (encoded words), RFC 2231 (parameters).
Every function returns ASCII text, except an address whose local part is not ASCII (RFC 6532).
"""

import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from tocsin.domain.errors import Invalid
from tocsin.domain.message import Mailbox
from tocsin.wire.addresses import check_line, wire_address

FOLD_AT = 78
HARD_LIMIT = 998
ENCODED_WORD_MAX = 75
ENCODED_LINE_MAX = 76
LONGEST_ATOM = 900
"""What cannot be folded or encoded (an id, a URL in a structured field) must fit a line with its name."""

STRUCTURED = frozenset(
    {
        "auto-submitted",
        "feedback-id",
        "importance",
        "in-reply-to",
        "list-help",
        "list-id",
        "list-post",
        "list-subscribe",
        "list-unsubscribe",
        "list-unsubscribe-post",
        "precedence",
        "priority",
        "references",
        "sender",
        "x-priority",
    }
)
"""Fields whose readers do not expect encoded words; their values stay ASCII and fold at spaces."""

_WORD_COST = len("=?utf-8?b??=")
_NARROWEST_WORD = _WORD_COST + len("=F0=9F=94=94")
_PHRASE = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_QUOTED_SAFE = re.compile(r"[ -!#-\[\]-~]*")
_Q_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*+-/")
_PARAMETER_PLAIN = "!#$&+-.^_`|~"


def text_field(name: str, value: str, field: str) -> str:
    """An unstructured field (Subject, X-…), or a STRUCTURED one folded at its spaces."""
    if len(name) + len(value) + 2 <= FOLD_AT and _reads_as_written(value):
        return f"{name}: {value}\r\n"
    if name.lower() in STRUCTURED:
        return f"{name}: {_folded(name, check_atoms(value, field).split())}\r\n"
    check_line(value, field)
    words = value.split(" ")
    longest = max(map(len, words))
    if _reads_as_written(value) and "" not in words and longest < HARD_LIMIT - len(name) - 2:
        return f"{name}: {_folded(name, words)}\r\n"
    # Under a very long name the first line runs over 76 rather than start empty: readers would
    # take the fold for a blank of the value.
    used = min(len(name) + 1, ENCODED_LINE_MAX - 1 - _NARROWEST_WORD)
    return f"{name}:{_encoded(value, used)}\r\n"


def check_atoms(value: str, field: str) -> str:
    """A STRUCTURED field's value: ASCII, and nothing in it longer than a line can carry."""
    check_line(value, field)
    if not value.isascii() or (
        len(value) > LONGEST_ATOM and any(len(atom) > LONGEST_ATOM for atom in value.split())
    ):
        raise Invalid(
            "invalid_header_value",
            f"{field} must be ASCII, with no part longer than {LONGEST_ATOM} characters",
            remedy="Percent-encode addresses of pages, and shorten them.",
            field=field,
        )
    return value


def address_field(name: str, mailboxes: Sequence[Mailbox], field: str) -> str:
    """From, To, Cc, Reply-To: names quoted or encoded as they need, one line for each that does not fit."""
    line = f"{name}:"
    used = len(line)
    last = len(mailboxes) - 1
    for index, mailbox in enumerate(mailboxes):
        comma = "," if index < last else ""
        text = _mailbox(mailbox, used, field) + comma
        first_line = text.partition("\r\n")[0]
        if index and used + len(first_line) > FOLD_AT:
            text = "\r\n" + _mailbox(mailbox, 0, field) + comma
        line += text
        used = len(line) - line.rfind("\n") - 1
    return line + "\r\n"


def parameter(name: str, value: str) -> str:
    """`; name="value"` on lines of its own; RFC 2231 form if it is long, not ASCII or hard to quote."""
    quoted = f';\r\n {name}="{value}"'
    if len(quoted) <= FOLD_AT and _QUOTED_SAFE.fullmatch(value) and "=?" not in value:
        return quoted
    pieces = [quote(char, safe=_PARAMETER_PLAIN, errors="replace") for char in value]
    room = FOLD_AT - len(f" {name}*=utf-8'';")
    if sum(map(len, pieces)) <= room:
        return f";\r\n {name}*=utf-8''{''.join(pieces)}"
    segments = _packed(pieces, room - 10, room - 10)
    return "".join(
        f";\r\n {name}*{number}*={'' if number else 'utf-8' + chr(39) * 2}{segment}"
        for number, segment in enumerate(segments)
    )


def _reads_as_written(value: str) -> bool:
    """Printable ASCII that no reader trims at its ends or decodes as an encoded word."""
    return (
        value.isascii()
        and value.isprintable()
        and "=?" not in value
        and value[:1] != " "
        and value[-1:] != " "
    )


def _folded(name: str, words: Iterable[str]) -> str:
    lines: list[str] = []
    line = ""
    room = FOLD_AT - len(name) - 2
    for word in words:
        if line and len(line) + 1 + len(word) > room:
            lines.append(line)
            line = word
            room = FOLD_AT - 1
        else:
            line = f"{line} {word}" if line else word
    return "\r\n ".join([*lines, line])


def _encoded(text: str, used: int) -> str:
    """` =?utf-8?…?=` words for all of `text`, the first on a line that already has `used` characters."""
    room = min(ENCODED_WORD_MAX, ENCODED_LINE_MAX - used - 1)
    lead = " " if room >= _NARROWEST_WORD else "\r\n "
    first = (room if lead == " " else ENCODED_WORD_MAX) - _WORD_COST
    room = ENCODED_WORD_MAX - _WORD_COST
    raw = text.encode("utf-8", "replace")
    plain = sum(char in _Q_PLAIN or char == " " for char in text)
    if plain + 3 * (len(raw) - plain) <= len(raw) * 4 // 3:
        words = [f"=?utf-8?q?{word}?=" for word in _packed(_q_pieces(text), first, room)]
    else:
        words = [f"=?utf-8?b?{word}?=" for word in _b_words(raw, first, room)]
    return lead + "\r\n ".join(words)


def _q_pieces(text: str) -> Iterator[str]:
    for char in text:
        if char in _Q_PLAIN:
            yield char
        elif char == " ":
            yield "_"
        else:
            yield "".join(f"={octet:02X}" for octet in char.encode("utf-8", "replace"))


def _b_words(raw: bytes, first: int, room: int) -> Iterator[str]:
    start = 0
    while start < len(raw):
        end = min(len(raw), start + (room if start else first) // 4 * 3)
        # An octet 10xxxxxx goes on with a character: step back to where that one starts.
        while end < len(raw) and raw[end] & 0xC0 == 0x80:
            end -= 1
        yield b2a_base64(raw[start:end], newline=False).decode("ascii")
        start = end


def _packed(pieces: Iterable[str], first: int, room: int) -> list[str]:
    """Pieces joined greedily into runs of at most `first`, then `room` characters."""
    runs: list[str] = []
    run = ""
    limit = first
    for piece in pieces:
        if len(run) + len(piece) > limit:
            runs.append(run)
            run = ""
            limit = room
        run += piece
    return [*runs, run]


def _mailbox(mailbox: Mailbox, used: int, field: str) -> str:
    address = wire_address(mailbox.address, field)
    name = mailbox.name
    if not name:
        return f" {address}"
    if len(name) <= FOLD_AT // 2 and name.isascii() and "=?" not in name:
        if _PHRASE.fullmatch(name):
            return _joined(f" {name}", address, used)
        if _QUOTED_SAFE.fullmatch(name):
            return _joined(f' "{name}"', address, used)
    return _joined(_encoded(check_line(name, field), used), address, used)


def _joined(name: str, address: str, used: int) -> str:
    last = len(name) - name.rfind("\n") - 1
    if "\r\n" not in name:
        last += used
    fold = "\r\n" if last + len(address) + 3 > FOLD_AT else ""
    return f"{name}{fold} <{address}>"
