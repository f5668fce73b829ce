"""Identity: who asks, from the headers; and whether they ask too often."""

import asyncio
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from tocsin.domain.errors import Forbidden, Unauthenticated
from tocsin.faces.http.exchange import RawHeaders
from tocsin.faces.http.limits import Buckets
from tocsin.service.app import App
from tocsin.service.keys import KeyRing
from tocsin.service.principal import Operator, ProjectKey

#: A person's own token, whatever the project's limit is.
SUBSCRIBER_PER_MIN: Final = 600


class InboxAccess(Struct, frozen=True):
    """Whose inboxes may be read. until: when a subscriber's token ends, None for a project's key."""

    project: ProjectKey
    until: datetime | None = None


def credential(headers: RawHeaders) -> str | None:
    """The key or token of a request: X-Api-Key, else Authorization: Bearer."""
    key = headers.get(b"x-api-key")
    if key is not None:
        return key.decode("latin-1").strip()
    scheme, _, rest = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else None


def is_token(text: str) -> bool:
    """Whether it has the form of a signed token; keys have no dots."""
    return text.count(".") == 2


class Gate:
    """Lets a request in, or raises what its answer should be."""

    def __init__(self, app: App) -> None:
        self.ring = KeyRing(app)
        self._buckets = Buckets(asyncio.get_running_loop().time)

    def close(self) -> None:
        """Hear of no more changes of keys."""
        self.ring.close()

    async def project(self, headers: RawHeaders) -> ProjectKey:
        """The project whose key the request carries."""
        who = await self.ring.project(credential(headers))
        self._buckets.take(who.number, who.rate_limit_per_min)
        return who

    async def operator(self, headers: RawHeaders, *, writes: bool) -> Operator:
        """The operator whose key the request carries."""
        return await self.ring.operator(credential(headers), writes=writes)

    async def inbox(self, headers: RawHeaders, subscriber_id: str) -> InboxAccess:
        """Access to one person's inbox: their token, or their project's key."""
        shown = credential(headers)
        if shown is None or not is_token(shown):
            return InboxAccess(await self.project(headers))
        return await self.token(shown, subscriber_id)

    async def token(self, shown: str, subscriber_id: str) -> InboxAccess:
        """Access by a subscriber's token."""
        token = await self.ring.subscriber(shown)
        if token is None:
            raise Unauthenticated(
                "invalid_token",
                "Invalid or expired token",
                remedy="get a new one with POST /v1/auth/subscriber-token",
            )
        if token.subscriber_id != subscriber_id:
            raise Forbidden(
                "token_subscriber_mismatch",
                "Token subscriber mismatch",
                remedy="use this subscriber's own token",
            )
        self._buckets.take((token.project.number, subscriber_id), SUBSCRIBER_PER_MIN)
        return InboxAccess(token.project, datetime.fromtimestamp(token.expires_at, UTC))
