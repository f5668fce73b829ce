"""How long a server asks us to wait, and how much it still allows: Retry-After and RateLimit headers.

Retry-After (RFC 9110 §10.2.3) is a count of seconds or an HTTP date (§5.6.7). A date is measured against the
`Date` of the same reply where there is one, so that neither clock has to be right.
RateLimit headers as most providers send them (draft-ietf-httpapi-ratelimit-headers-06): `ratelimit-limit`,
`ratelimit-remaining`, `ratelimit-reset` in seconds from now, `ratelimit-policy: 20;w=1`. Headers of the same
kind that count in epochs (`x-ratelimit-reset` of SendGrid and Discord) belong to their connectors.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from msgspec import Struct

#: Whoever asks for more is asked again after this.
WAIT_MAX_S = 86_400.0

_SECONDS = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")
_POLICY = re.compile(r"\s*([0-9]{1,15})\s*;(?:[^,]*;)?\s*w=([0-9]{1,15})\b")


class RateLimit(Struct, frozen=True):
    """A provider's own figures: `limit` per `window_s`, `remaining` of it until `reset_s` from now."""

    limit: int
    remaining: int | None = None
    reset_s: float | None = None
    window_s: float | None = None


def retry_after_s(value: str | None, *, now: datetime, date: str | None = None) -> float | None:
    """Seconds to wait, within 0 and WAIT_MAX_S; None when `value` is absent or says nothing.

    value: the Retry-After header; date: the Date header of the same reply; now: aware, used without one.
    """
    if value is None:
        return None
    seconds = _seconds(value)
    if seconds is not None:
        return min(seconds, WAIT_MAX_S)
    until = http_date(value)
    if until is None:
        return None
    since = http_date(date) if date is not None else None
    wait = (until - (since or now)).total_seconds()
    return min(max(wait, 0.0), WAIT_MAX_S)


def rate_limit(headers: Mapping[str, str]) -> RateLimit | None:
    """The RateLimit headers of a reply (names in lower case); None when there is no limit among them."""
    policy = _POLICY.match(headers.get("ratelimit-policy", ""))
    limit = _seconds(headers.get("ratelimit-limit", ""))
    if limit is None:
        if policy is None:
            return None
        limit = float(policy[1])
    remaining = _seconds(headers.get("ratelimit-remaining", ""))
    reset = _seconds(headers.get("ratelimit-reset", ""))
    return RateLimit(
        limit=int(limit),
        remaining=None if remaining is None else int(remaining),
        reset_s=None if reset is None else min(reset, WAIT_MAX_S),
        window_s=None if policy is None else float(policy[2]),
    )


def http_date(value: str) -> datetime | None:
    """An HTTP date in any of its three forms, aware, UTC; None when it is none."""
    try:
        at = parsedate_to_datetime(value)
        # The asctime form names no zone; an HTTP date is always GMT.
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _seconds(value: str) -> float | None:
    text = value.strip()
    return float(text) if _SECONDS.fullmatch(text) else None
