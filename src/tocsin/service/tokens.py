"""Subscriber tokens: what a browser shows to read one person's inbox, and nothing else."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from msgspec import Meta, Struct

from tocsin.service.app import App
from tocsin.service.principal import ProjectKey
from tocsin.wire import tokens

TTL_HOURS_DEFAULT: Final = 2
TTL_HOURS_MAX: Final = 24
TTL_S_MIN: Final = 60


class TokenRequest(Struct, frozen=True):
    """`ttl_hours` is brought into 1 to 24; `ttl_secs`, down to a minute, wins over it."""

    subscriber_id: Annotated[str, Meta(min_length=1, max_length=256)]
    ttl_hours: int = TTL_HOURS_DEFAULT
    ttl_secs: int | None = None


class TokenAnswer(Struct, frozen=True):
    token: str
    subscriber_id: str
    project_id: str
    expires_at: datetime
    ttl_hours: float


def issue(app: App, who: ProjectKey, wanted: TokenRequest) -> TokenAnswer:
    """A token for one subscriber, known or not yet: an inbox needs no subscriber row."""
    longest = TTL_HOURS_MAX * 3600
    if wanted.ttl_secs is not None:
        ttl_s = min(max(wanted.ttl_secs, TTL_S_MIN), longest)
    else:
        ttl_s = min(max(wanted.ttl_hours, 1), TTL_HOURS_MAX) * 3600
    now = int(app.clock.now().timestamp())
    claims = tokens.InboxClaims(wanted.subscriber_id, who.id, who.number, now, now + ttl_s)
    key = tokens.derive_key(app.signing_secret, "inbox")
    return TokenAnswer(
        token=tokens.sign_inbox(key, claims),
        subscriber_id=wanted.subscriber_id,
        project_id=who.id,
        expires_at=datetime.fromtimestamp(now, UTC) + timedelta(seconds=ttl_s),
        ttl_hours=ttl_s / 3600,
    )
