"""What an HTTP answer means where a provider's own error names say nothing: one Outcome by status.

A connector reads its provider's names first and comes here with the rest. Details are our own words: what a
provider writes may repeat an address or a key, so none of it is passed on.
"""

from datetime import datetime
from typing import assert_never

from tocsin.domain.outcome import (
    Accepted,
    ContentRejected,
    Misconfigured,
    Outcome,
    Throttled,
    Transient,
    Unknown,
)
from tocsin.wire.http import NoAnswer, Reply, Unreachable
from tocsin.wire.retry_after import rate_limit, retry_after_s

#: The rest of a lane whose provider did not say how long.
UNSAID_WAIT_S = 5.0
#: "Wait 0 seconds" would let a lane ask without end, at no cost in attempts.
WAIT_MIN_S = 0.1

_UNREACHABLE = {
    "refused": "nothing listens at the provider's address",
    "dns": "the provider's host name does not resolve",
    "tls": "no trusted TLS connection: its certificate or the system's certificates are wrong",
    "connect_timeout": "no connection within the time limit",
    "unreachable": "no connection to the provider",
}
_NO_ANSWER = {
    "timeout": "the request left and no answer came within the time limit",
    "reset": "the connection broke after the request left",
    "broken_reply": "the request left and what came back was no HTTP answer",
}
_OUR_CONFIGURATION = {
    401: "the provider does not know the key: check the account's credentials",
    402: "the provider wants to be paid: check the account's billing",
    403: "the provider forbids this account to send: check the key's rights and the sender",
    404: "nothing at this path: check the account's base URL",
    405: "nothing at this path takes a send: check the account's base URL",
    407: "a proxy on the way wants credentials: check HTTP_PROXY and HTTPS_PROXY",
}
_SERVED_TOO_LATE = frozenset({502, 504})
_COME_AGAIN = frozenset({408, 409, 421, 423, 425})


def judge_failure(failure: Unreachable | NoAnswer) -> Outcome:
    """No answer: Transient when nothing left, Unknown when something may have (law 6)."""
    match failure:
        case Unreachable(code):
            return Transient(code, _UNREACHABLE[code], down=True)
        case NoAnswer(code):
            return Unknown(code, _NO_ANSWER[code])
        case _:
            assert_never(failure)


def judge_status(reply: Reply, *, now: datetime, dedupes: bool) -> Outcome:
    """An answer by its status alone. `now` (aware) is for a Retry-After that is a date.

    dedupes: a repeat under the same key is harmless, so a gateway's 502 and 504 may be tried again;
    without it they are Unknown, because what stands behind the gateway may have taken the message.
    """
    status = reply.status
    code = f"http_{status}"
    if 200 <= status < 300:
        return Accepted()
    if status == 429:
        return throttled(reply, now)
    if status in _OUR_CONFIGURATION:
        return Misconfigured(code, _OUR_CONFIGURATION[status])
    if status < 400:
        return Misconfigured(code, "the provider points elsewhere: check the account's base URL")
    if status in _COME_AGAIN:
        return Transient(code, "the provider could not take the request at this moment")
    if status == 413:
        return ContentRejected(code, "the message is larger than the provider takes")
    if status < 500:
        return ContentRejected(code, "the provider refuses the request as it is")
    if status in _SERVED_TOO_LATE and not dedupes:
        return Unknown(code, "a gateway answered for the provider, which may have the message")
    return Transient(code, "the provider failed")


def throttled(reply: Reply, now: datetime) -> Throttled:
    """A burst limit: exactly as long as Retry-After says, else until the quota resets, else UNSAID_WAIT_S."""
    wait = retry_after_s(reply.header("retry-after"), now=now, date=reply.header("date"))
    if wait is None:
        limit = rate_limit(reply.headers)
        wait = limit.reset_s if limit is not None else None
    return Throttled(UNSAID_WAIT_S if wait is None else max(wait, WAIT_MIN_S))
