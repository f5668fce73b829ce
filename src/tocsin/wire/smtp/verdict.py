"""What a refusing reply means for the job: RFC 5321 codes and RFC 3463 statuses to one Outcome.

The status decides where there is one, the code where there is none, and the text only where servers use one
code for different things (rate limits, greylisting, relaying).
"""

import re
from collections.abc import Iterable
from enum import IntEnum

from tocsin.domain.outcome import (
    ContentRejected,
    Misconfigured,
    Outcome,
    QuotaSpent,
    RecipientPermanent,
    RecipientTemporary,
    Throttled,
    Transient,
    Unknown,
    Unsupported,
)
from tocsin.wire.smtp.masking import masked
from tocsin.wire.smtp.replies import Reply

LANE_REST_S = 5.0
DESTINATION_REST_S = 60.0
REST_MAX_S = 3600.0

TOO_MANY_RECIPIENTS = (5, 3)

_DEAD_ADDRESS = frozenset({(1, 1), (1, 2), (1, 3), (1, 6), (1, 10), (2, 1)})
_MAILBOX_FULL = (2, 2)
_TOO_LARGE = (3, 4)
_SENDER_REFUSED = frozenset(
    {(1, 7), (1, 8), (7, 8), (7, 9), (7, 515), *((7, detail) for detail in range(20, 30))}
)
_RATE_STATUSES = frozenset({(7, 0), (7, 28), (7, 500), (7, 650), (7, 651)})
_RATE_CODES = frozenset({421, 450, 451})
_CREDENTIAL_CODES = frozenset({530, 534, 535, 538})
_PROTOCOL_CODES = frozenset({500, 501, 502, 503, 504, 555})
_SIZE_CODES = frozenset({523, 552})

_DAILY = re.compile(r"daily.{0,20}(?:quota|limit)", re.IGNORECASE)
_LANE_RATE = re.compile(r"throttling failure|maximum sending rate", re.IGNORECASE)
_RATE = re.compile(r"\brate\b|too (?:many|much|fast)|throttl|slow down", re.IGNORECASE)
_GREYLISTED = re.compile(r"gr[ea]y.?list", re.IGNORECASE)
_OUR_FAULT = re.compile(
    r"\brelay|authenticat|\bspf\b|\bdkim\b|\bdmarc\b|sender (?:address )?(?:rejected|denied|not)"
    r"|not (?:allowed|permitted|authori[sz]ed) to send|block(?:ed using|list)|blacklist",
    re.IGNORECASE,
)
_ABOUT_RECIPIENT = re.compile(r"recipient|mailbox|\buser\b", re.IGNORECASE)
_WAIT = re.compile(r"\b(?:in|after|for) (\d{1,5}) ?(s\b|sec|min)", re.IGNORECASE)


class Stage(IntEnum):
    """The step that a reply answers."""

    GREETING = 0
    EHLO = 1
    STARTTLS = 2
    AUTH = 3
    MAIL = 4
    RCPT = 5
    DATA = 6
    BODY = 7


def judge(
    stage: Stage, reply: Reply, addresses: Iterable[str] = (), *, alone: bool = True
) -> Outcome:
    """The Outcome of a reply that is not the one hoped for.

    addresses: those the server was told, so that details can leave them out. alone: the mail has one
    recipient, so that what is said after DATA is said of it.
    """
    status = reply.enhanced
    code = f"smtp_{reply.code}" + ("" if status is None else "_{}.{}.{}".format(*status))
    detail = masked(reply.text, addresses)
    why = None if status is None else status[1:]
    if reply.code // 100 in (4, 5) and _DAILY.search(reply.text):
        return QuotaSpent("smtp_daily_quota")
    match reply.code // 100:
        case 4:
            return _temporary(stage, reply, why, code, detail)
        case 5 if stage <= Stage.MAIL:
            return _refused_us(stage, reply.code, why, code, detail)
        case 5:
            return _permanent(stage, reply, why, code, detail, alone=alone)
        case _ if stage is Stage.BODY:
            return Unknown("smtp_unexpected_reply", detail)
        case _:
            return Transient("smtp_unexpected_reply", detail)


def _temporary(
    stage: Stage, reply: Reply, why: tuple[int, int] | None, code: str, detail: str
) -> Outcome:
    text = reply.text
    if _LANE_RATE.search(text):
        return Throttled(LANE_REST_S)
    if why == _MAILBOX_FULL:
        return RecipientTemporary("mailbox_full", detail)
    if _GREYLISTED.search(text):
        return RecipientTemporary("greylisted", detail)
    # Other 4.7 statuses (TLS or reverse DNS wanted) do not pass by waiting: they cost attempts.
    about_rate = why in _RATE_STATUSES or _RATE.search(text)
    if about_rate and why != TOO_MANY_RECIPIENTS and reply.code in _RATE_CODES:
        return _throttled(stage, text)
    if stage is Stage.RCPT and (reply.code == 450 or (why is not None and why[0] in (1, 2))):
        return RecipientTemporary(code, detail)
    return Transient(code, detail)


def _throttled(stage: Stage, text: str) -> Throttled:
    destination_only = stage >= Stage.RCPT
    wait = DESTINATION_REST_S if destination_only else LANE_REST_S
    said = _WAIT.search(text)
    if said:
        wait = int(said[1]) * (60.0 if said[2].lower() == "min" else 1.0)
    return Throttled(min(max(wait, 1.0), REST_MAX_S), destination_only)


def _refused_us(
    stage: Stage, number: int, why: tuple[int, int] | None, code: str, detail: str
) -> Outcome:
    """Before any recipient was named: the account, the sender or the size."""
    if stage is Stage.MAIL:
        if why == _TOO_LARGE or number in _SIZE_CODES:
            return ContentRejected(code, detail)
        if number in _PROTOCOL_CODES and why not in _SENDER_REFUSED:
            return Unsupported(code, detail)
    return Misconfigured(code, detail)


def _permanent(
    stage: Stage, reply: Reply, why: tuple[int, int] | None, code: str, detail: str, *, alone: bool
) -> Outcome:
    number = reply.code
    if number in _CREDENTIAL_CODES or why in _SENDER_REFUSED:
        return Misconfigured(code, detail)
    if why == _MAILBOX_FULL:
        return RecipientTemporary("mailbox_full", detail)
    if why in _DEAD_ADDRESS and (stage is Stage.RCPT or alone):
        return RecipientPermanent(code, detail, suppress=True)
    if why == _TOO_LARGE or number in _SIZE_CODES:
        return ContentRejected(code, detail)
    if _OUR_FAULT.search(reply.text):
        return Misconfigured(code, detail)
    if stage is Stage.RCPT:
        # 5.7.1 is how servers deny relaying and senders; a rule about this recipient says so.
        if why == (7, 1) and not _ABOUT_RECIPIENT.search(reply.text):
            return Misconfigured(code, detail)
        return RecipientPermanent(code, detail)
    return Unsupported(code, detail) if number in _PROTOCOL_CODES else ContentRejected(code, detail)
