"""What Resend's answer means: by its error names first, by status where it gives none.

Not by status alone: a 429 hides a burst limit and two quotas, and a refused key has come as 400, 401 and 403.
Resend's texts may repeat an address, so they are read and never passed on.
"""

import re
from typing import Final

import msgspec
from msgspec import Struct

from tocsin.connectors.judge import judge_status, throttled
from tocsin.domain.clock import Clock
from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    Misconfigured,
    Outcome,
    QuotaSpent,
    RecipientPermanent,
    Transient,
    Unknown,
)
from tocsin.wire.http import Reply
from tocsin.wire.retry_after import retry_after_s

ID_MAX = 128


class _Sent(Struct):
    id: object = None


class _Refused(Struct):
    index: int = -1
    message: str = ""


class _BatchSent(Struct):
    data: list[_Sent] = []
    errors: list[_Refused] = []


class _Problem(Struct):
    name: str = ""
    message: str = ""


_MISCONFIGURED: Final = {
    "missing_api_key": "Resend saw no API key: set the account's api_key",
    "invalid_api_key": "Resend does not know the API key: set the account's api_key",
    "restricted_api_key": "the API key may not send: give it sending access in Resend",
    "invalid_permission": "the API key may not send: give it sending access in Resend",
    "suspended_api_key": "Resend suspended the API key: see the account's mail from Resend",
    "email_above_quota": "the account's plan does not cover this: see its usage in Resend",
    "not_found": "Resend knows no such path: check the account's base_url",
    "method_not_allowed": "Resend takes no mail at this path: check the account's base_url",
}
_KEY_REFUSED: Final = "Resend refuses the API key: set the account's api_key"
_DOMAIN_REFUSED: Final = (
    "the sender's domain is not verified: verify it in Resend, or send from another"
)
_TEST_MODE: Final = "the account may only write to its own address: verify a domain in Resend"
_TRANSIENT: Final = {
    "concurrent_idempotent_requests": "an earlier try under this key is still running",
    "resource_locked": "another request holds what this one needs",
    "application_error": "Resend failed",
    "internal_server_error": "Resend failed",
    "service_unavailable": "Resend is not available",
}
_QUOTA: Final = frozenset({"daily_quota_exceeded", "monthly_quota_exceeded"})
_CONTENT: Final = frozenset(
    {
        "validation_error",
        "missing_required_field",
        "missing_required_parameter",
        "invalid_parameter",
        "invalid_attachment",
        "invalid_from_address",
        "invalid_idempotency_key",
    }
)
_FIELD = re.compile(
    r"`(from|to|cc|bcc|reply_to|subject|html|text|headers|attachments|tags|template)\b[^`]*`"
)


def judge(reply: Reply, clock: Clock) -> Outcome:
    """What an answer other than 2xx means: by Resend's error name, by status where it gives none."""
    try:
        problem = msgspec.json.decode(reply.body, type=_Problem)
    except msgspec.DecodeError:
        return _judge_unnamed(reply, clock)
    name = problem.name
    if name == "rate_limit_exceeded":
        return throttled(reply, clock.now())
    if name in _QUOTA:
        asked = reply.header("retry-after")
        return QuotaSpent(name, retry_after_s(asked, now=clock.now(), date=reply.header("date")))
    if name in _MISCONFIGURED:
        return Misconfigured(name, _MISCONFIGURED[name])
    if name in _TRANSIENT:
        return Transient(name, _TRANSIENT[name])
    if name == "invalid_idempotent_request":
        return Unknown(
            name, "this key was used before with another body: what that was is not known"
        )
    if name in _CONTENT and reply.status not in {429, *range(500, 600)}:
        return _judge_refusal(name, problem.message, reply.status)
    return judge_status(reply, now=clock.now(), dedupes=True)


def _judge_unnamed(reply: Reply, clock: Clock) -> Outcome:
    # Not Resend's own words: a page of what stands before it says nothing about the mail.
    if reply.status in {400, 409, 422}:
        return Transient(f"http_{reply.status}", "an answer that is not Resend's")
    return judge_status(reply, now=clock.now(), dedupes=True)


def _judge_refusal(name: str, message: str, status: int) -> Outcome:
    """A refusal whose name covers several things: only the text tells key, sender and recipient apart."""
    said = message.lower()
    if "api key" in said or status == 401:
        return Misconfigured("invalid_api_key", _KEY_REFUSED)
    if "own email address" in said:
        return Misconfigured("test_mode", _TEST_MODE)
    if "domain" in said and "not verified" in said:
        return Misconfigured("domain_not_verified", _DOMAIN_REFUSED)
    if status == 403:
        return Misconfigured(name, "Resend forbids this account to send: check key and sender")
    field = _FIELD.search(message)
    if field is None:
        return ContentRejected(name, "Resend refuses the mail as it is")
    if field[1] == "to":
        return RecipientPermanent("invalid_recipient", "Resend refuses the recipient's address")
    return ContentRejected(name, f"Resend refuses the mail's `{field[1]}`")


def judge_single(reply: Reply) -> Outcome:
    """What a 2xx to one mail means; a missing id is still a success."""
    try:
        return _accepted(msgspec.json.decode(reply.body, type=_Sent))
    except msgspec.DecodeError:
        return _unreadable()


def judge_batch(reply: Reply, count: int) -> list[Outcome]:
    """What a 2xx to a batch means, per mail. Ids come in order, for the mails that were not refused."""
    try:
        answer = msgspec.json.decode(reply.body, type=_BatchSent)
    except msgspec.DecodeError:
        return [_unreadable()] * count
    refused = {error.index: error.message for error in answer.errors}
    if not refused.keys() <= set(range(count)):
        return [_unreadable()] * count
    in_order = iter(answer.data)
    gapless = len(answer.data) < count
    outcomes: list[Outcome] = []
    for index in range(count):
        sent = None if gapless and index in refused else next(in_order, None)
        if index in refused:
            outcomes.append(_judge_refusal("validation_error", refused[index], 422))
        else:
            outcomes.append(_accepted(sent))
    return outcomes


def _accepted(sent: _Sent | None) -> Accepted:
    given = sent.id if sent else None
    return Accepted(given if isinstance(given, str) and 0 < len(given) <= ID_MAX else None)


def _unreadable() -> Unknown:
    # The key makes it safe to ask again, and the same answer comes back whole.
    return Unknown("unreadable_reply", "success was answered, but not in Resend's words")
