"""A verdict: what an outcome makes of a job, its lane and its recipient. Pure."""

from typing import assert_never

from msgspec import Struct

from tocsin.domain.job import State
from tocsin.domain.outcome import (
    Accepted,
    Cancelled,
    ContentRejected,
    Expired,
    Misconfigured,
    Outcome,
    QuotaSpent,
    RecipientPermanent,
    RecipientTemporary,
    Suppressed,
    Throttled,
    Transient,
    Unknown,
    Unsupported,
)
from tocsin.domain.retry import UNKNOWN_S, wait_s

#: A throttled lane with no word from the provider rests this long.
THROTTLE_MIN_S = 0.5
#: A spent quota with no reset time, and a refused account, are asked again after this long.
QUOTA_S = 900.0
MISCONFIGURED_S = 30.0
#: A provider that cannot be reached is tried again after this long.
DOWN_S = 5.0


class Verdict(Struct, frozen=True):
    """next_s: seconds to the next attempt, None when there is none; counts: it used up a try;

    pause_s: seconds the whole lane rests; suppress: the address is dead.
    """

    state: State
    code: str | None = None
    detail: str | None = None
    next_s: float | None = None
    counts: bool = True
    pause_s: float | None = None
    suppress: bool = False
    provider_message_id: str | None = None


def judge(  # noqa: C901 - one arm for each outcome
    outcome: Outcome, *, tries: int, attempts_max: int, chance: float, resend_unknown: bool
) -> Verdict:
    """tries: attempts used up before this one; chance in [0, 1) spreads the retry."""
    match outcome:
        case Accepted(provider_message_id):
            return Verdict(State.SENT, provider_message_id=provider_message_id)
        case Suppressed(code):
            return Verdict(State.SKIPPED, code)
        case Cancelled(code):
            return Verdict(State.CANCELLED, code)
        case Expired(code):
            return Verdict(State.EXPIRED, code)
        case Throttled(after_s, destination_only):
            rest = max(after_s, THROTTLE_MIN_S)
            pause = None if destination_only else rest
            return Verdict(State.THROTTLED, "throttled", next_s=rest, counts=False, pause_s=pause)
        case QuotaSpent(code, after_s):
            rest = QUOTA_S if after_s is None else after_s
            return Verdict(State.THROTTLED, code, next_s=rest, counts=False, pause_s=rest)
        case Misconfigured(code, detail):
            rest = MISCONFIGURED_S
            return Verdict(State.THROTTLED, code, detail, next_s=rest, counts=False, pause_s=rest)
        case Transient(code, detail, down=True):
            return Verdict(
                State.THROTTLED, code, detail, next_s=DOWN_S, counts=False, pause_s=DOWN_S
            )
        case Transient(code, detail) | RecipientTemporary(code, detail):
            if tries + 1 >= attempts_max:
                return Verdict(State.FAILED, code, detail)
            return Verdict(State.RETRY, code, detail, next_s=wait_s(tries + 1, chance))
        case RecipientPermanent(code, detail, suppress):
            return Verdict(State.FAILED, code, detail, suppress=suppress)
        case ContentRejected(code, detail) | Unsupported(code, detail):
            return Verdict(State.FAILED, code, detail)
        case Unknown(code, detail):
            if resend_unknown and tries + 1 < attempts_max:
                wait = UNKNOWN_S if tries == 0 else wait_s(tries, chance)
                return Verdict(State.UNKNOWN, code, detail, next_s=wait)
            return Verdict(State.UNKNOWN, code, detail)
        case _:
            assert_never(outcome)
