"""One mail over a session: MAIL, RCPT, DATA, the body; and exactly what is known about it afterwards."""

from msgspec import Struct

from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    Outcome,
    RecipientPermanent,
    Transient,
    Unknown,
    Unsupported,
)
from tocsin.wire.smtp.receipt import receipt
from tocsin.wire.smtp.replies import Reply
from tocsin.wire.smtp.session import Capabilities, Session
from tocsin.wire.smtp.verdict import TOO_MANY_RECIPIENTS, Stage, judge

ONE_WRITE_MAX = 1 << 16
"""A mail up to this size leaves in one write with its final dot."""

_NOT_LINE_ENDS = bytes(octet for octet in range(256) if octet not in b"\r\n")


class Envelope(Struct, frozen=True):
    """Addresses as `wire_address` gives them; `data` as the MIME writer does: CRLF lines, the last one ended.

    The mail goes only if the server takes `to`; `copies` are further recipients of the same mail.
    """

    sender: str
    to: str
    data: bytes
    copies: tuple[str, ...] = ()


class Delivery(Struct, frozen=True):
    """What became of the mail for `to`; how many of the copies were refused.

    unsent: the server closed or is closing, and no end of the mail was written: a new connection may try again.
    """

    outcome: Outcome
    copies_refused: int = 0
    unsent: bool = False


async def deliver(session: Session, envelope: Envelope) -> Delivery:
    """Send one mail. Afterwards the session is ready for the next one, or its link has ended."""
    data = stuffed(envelope.data)
    parameters = _parameters(session.capabilities, envelope)
    if not isinstance(parameters, str):
        return Delivery(parameters)
    session.served += 1
    recipients = (envelope.to, *envelope.copies)
    steps = [Stage.MAIL, *(Stage.RCPT for _ in recipients), Stage.DATA]
    lines = [
        f"MAIL FROM:<{envelope.sender}>{parameters}\r\n",
        *(f"RCPT TO:<{address}>\r\n" for address in recipients),
        "DATA\r\n",
    ]
    # With copies DATA waits for the replies: 354 for the copies alone could not be taken back.
    together = len(lines) - 1 if envelope.copies else len(lines)
    replies = await session.commands(lines[:together], essential=2)
    refusal = _refusal(session, envelope, steps[:together], replies)
    if refusal is None and envelope.copies:
        replies += await session.commands(lines[together:], essential=1)
        refusal = _refusal(session, envelope, steps, replies)
    if refusal is not None:
        await _clean_up(session, replies, refusal)
        return refusal
    if not session.link.quiet:
        session.link.abort("garbled")
        return Delivery(Transient("smtp_garbled", "the server answers what was not asked"))
    refused = sum(reply.code >= 300 for reply in replies[2:-1])
    return Delivery(await _send_body(session, envelope, data), refused)


def _parameters(capabilities: Capabilities, envelope: Envelope) -> str | Outcome:
    """The parameters of MAIL, or why this server cannot take this mail."""
    size = len(envelope.data)
    if capabilities.size is not None and size > capabilities.size:
        return ContentRejected(
            "smtp_too_large", f"{size} octets, and the server takes {capabilities.size}"
        )
    parameters = f" SIZE={size}" if capabilities.size_stated else ""
    if (
        envelope.data.isascii()
        and envelope.to.isascii()
        and envelope.sender.isascii()
        and all(map(str.isascii, envelope.copies))
    ):
        return parameters
    if capabilities.smtputf8:
        return parameters + (" BODY=8BITMIME" if capabilities.eight_bit else "") + " SMTPUTF8"
    detail = "the server does not offer SMTPUTF8, which an address outside ASCII needs"
    if not envelope.to.isascii():
        return RecipientPermanent("smtp_smtputf8_missing", detail)
    return Unsupported("smtp_smtputf8_missing", detail)


def _refusal(
    session: Session, envelope: Envelope, steps: list[Stage], replies: list[Reply]
) -> Delivery | None:
    """The first thing that keeps the mail for `to` from going on, if any."""
    for index, (stage, reply) in enumerate(zip(steps, replies, strict=False)):
        is_copy = stage is Stage.RCPT and index > 1
        if _passes(stage, reply) or (is_copy and reply.code != 421):
            continue
        return Delivery(_judged(stage, reply, envelope), unsent=_closing(reply))
    if len(replies) < len(steps):
        return Delivery(_ended_early(session), unsent=True)
    return None


def _passes(stage: Stage, reply: Reply) -> bool:
    match stage:
        case Stage.DATA:
            return reply.code == 354
        case Stage.RCPT:
            # 251: taken and forwarded; 252: taken, not verified.
            return reply.code in (250, 251, 252)
        case _:
            return reply.code == 250


def _judged(stage: Stage, reply: Reply, envelope: Envelope) -> Outcome:
    addresses = (envelope.to, envelope.sender, *envelope.copies)
    return judge(stage, reply, addresses, alone=not envelope.copies)


def _ended_early(session: Session) -> Outcome:
    return Transient(f"smtp_{session.link.ended}", "the connection ended before the mail was sent")


def _closing(reply: Reply) -> bool:
    """421, or the count of this connection is full: the next one may begin anew."""
    status = reply.enhanced
    return reply.code == 421 or (
        reply.code == 452 and status is not None and status[1:] == TOO_MANY_RECIPIENTS
    )


async def _clean_up(session: Session, replies: list[Reply], refusal: Delivery) -> None:
    """Leave the session without a transaction, or end it."""
    link = session.link
    if refusal.unsent or not link.quiet:
        link.abort()
    elif replies[-1].code == 354:
        # DATA went with the refused RCPT and the server took it: an empty mail for nobody (RFC 2920 §3.1).
        await session.command(".\r\n")
    elif replies[0].code == 250:
        reset = await session.command("RSET\r\n")
        if reset is None or reset.code != 250:
            link.abort()


async def _send_body(session: Session, envelope: Envelope, data: bytes) -> Outcome:
    link = session.link
    if len(data) <= ONE_WRITE_MAX:
        end = data + b".\r\n"
    elif await link.write_all(data, session.timeouts.block):
        end = b".\r\n"
    else:
        # Without the dot the server has no mail. If it said why, that counts.
        said = await link.replies(1, 0.0)
        link.abort()
        return _judged(Stage.DATA, said[0], envelope) if said else _ended_early(session)
    if link.ended is not None:
        return _ended_early(session)
    link.write(end)
    replies = await link.replies(1, session.timeouts.final_dot)
    if not replies:
        return Unknown(f"smtp_{link.ended}", "the mail was sent and no answer came")
    if 200 <= replies[0].code < 300:
        return Accepted(receipt(replies[0]))
    return _judged(Stage.BODY, replies[0], envelope)


def _all_crlf(data: bytes) -> bool:
    """Whether every CR and every LF is one of a pair."""
    return data.count(b"\r\n") * 2 == len(data.translate(None, _NOT_LINE_ENDS))


def stuffed(data: bytes) -> bytes:
    """`data` with a dot before each line that begins with one (RFC 5321 §4.5.2).

    Raises ValueError if a line ends in anything but CRLF: servers disagree on where such a mail ends.
    """
    if not data.endswith(b"\r\n") or not _all_crlf(data):
        raise ValueError("a mail's lines must end in CRLF, the last one too")
    if b"\n." in data:
        data = data.replace(b"\n.", b"\n..")
    return b"." + data if data.startswith(b".") else data
