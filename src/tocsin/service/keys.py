"""Keys: whose a project key, a subscriber token or an operator key is, remembered for seconds."""

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from tocsin.domain.errors import Forbidden, Unauthenticated
from tocsin.service.app import App
from tocsin.service.principal import Operator, ProjectKey, SubscriberToken
from tocsin.store import erasures, projects
from tocsin.store import secrets as kept
from tocsin.wire import tokens

#: A key that was revoked in another process works this long at most, if its hint is lost.
CACHE_S: Final = 5.0
CACHED_MAX: Final = 10_000
HINT: Final = "projects"
OPERATOR_ROW: Final = "operator_key_sha256"

_SHAPE = re.compile(r"sk_[a-z0-9][a-z0-9_-]{0,62}_[0-9a-f]{32}")


def hash_key(key: str) -> bytes:
    """What is kept of a key: SHA-256, enough for 128 random bits."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def new_project_key(project_id: str) -> str:
    """A key of 128 random bits that names its project, as notifyd's."""
    return f"sk_{project_id}_{secrets.token_hex(16)}"


async def ensure_operator_key(app: App) -> str | None:
    """Make the operator key if no process and no setting ever did; the plaintext, this one time."""
    if app.settings.server.admin_api_key:
        return None
    key = f"admin_{secrets.token_hex(16)}"
    made = await kept.keep(app.db, OPERATOR_ROW, hash_key(key), app.clock.now())
    return key if made else None


class _Entry(Struct, frozen=True):
    """Whose it is (None: nobody's), and until when that is believed, in the loop's seconds."""

    who: ProjectKey | None
    until: float


class KeyRing:
    """Looks keys up, each at most once at a time and once in CACHE_S; forgets all on a hint."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._hints = app.notifier.subscribe(HINT)
        self._entries: dict[bytes | int, _Entry] = {}
        self._flights: dict[bytes | int, asyncio.Future[ProjectKey | None]] = {}
        self._generation = 0
        self._inbox_key = tokens.derive_key(app.signing_secret, "inbox")
        self._operators = _configured(app)
        self._operators_until = 0.0

    def close(self) -> None:
        """Hear no more hints."""
        self._hints.close()

    def forget(self) -> None:
        """Believe nothing that was looked up before."""
        self._generation += 1
        self._entries.clear()
        self._flights.clear()
        self._operators_until = 0.0

    async def project(self, key: str | None) -> ProjectKey:
        """The project of a key. Raises Unauthenticated."""
        if not key:
            raise Unauthenticated(
                "missing_api_key",
                "Missing API key (X-Api-Key header)",
                remedy="send a project key as `X-Api-Key` or as `Authorization: Bearer`",
            )
        who = None
        if _SHAPE.fullmatch(key):
            digest = hash_key(key)
            who = await self._remembered(digest, lambda: self._read(digest))
        if who is None:
            raise Unauthenticated(
                "invalid_api_key",
                "Invalid API key",
                remedy="check the key; a new one is made with POST "
                "/v1/admin/projects/{id}/rotate-key",
            )
        return who

    async def subscriber(self, token: str) -> SubscriberToken | None:
        """Whose a subscriber token is; None when it is not ours, expired, or its project or person is gone."""
        claims = tokens.read_inbox(self._inbox_key, token, self._app.clock.now().timestamp())
        if claims is None:
            return None
        who = await self.numbered(claims.number)
        if who is None:
            return None
        gone = await erasures.erased(self._app.db, [(claims.number, claims.sub)])
        if any(claims.iat <= at.timestamp() for at in gone.values()):
            return None
        return SubscriberToken(who, claims.sub, claims.exp)

    async def numbered(self, number: int) -> ProjectKey | None:
        """The living project of a number."""
        return await self._remembered(number, lambda: self._read_number(number))

    async def operator(self, key: str | None, *, writes: bool) -> Operator:
        """The operator of a key. Raises Unauthenticated, or Forbidden when it only reads."""
        await self._refresh_operators()
        digest = hash_key(key or "")
        matches = [o for known, o in self._operators if hmac.compare_digest(known, digest)]
        if not key or not matches:
            raise Unauthenticated(
                "admin_required",
                "Admin access required",
                remedy="send the operator key (ADMIN_API_KEY, or the one shown at first start) "
                "as `X-Api-Key` or as `Authorization: Bearer`",
            )
        who = max(matches, key=lambda operator: operator.writes)
        if writes and not who.writes:
            raise Forbidden(
                "read_only_key",
                "Read-only key: this action needs the admin key",
                remedy="use the admin key",
            )
        return who

    async def _refresh_operators(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._app.settings.server.admin_api_key or now < self._operators_until:
            return
        made = await kept.read(self._app.db, OPERATOR_ROW)
        self._operators = _configured(self._app)
        if made is not None:
            self._operators.append((made, Operator(writes=True)))
        self._operators_until = now + CACHE_S

    async def _remembered(
        self, name: bytes | int, read: Callable[[], Awaitable[tuple[ProjectKey | None, float]]]
    ) -> ProjectKey | None:
        if self._hints.take():
            self.forget()
        now = asyncio.get_running_loop().time()
        entry = self._entries.get(name)
        if entry is not None and now < entry.until:
            return entry.who
        flight = self._flights.get(name)
        if flight is None:
            flight = asyncio.ensure_future(self._fly(name, read))
            self._flights[name] = flight
        return await asyncio.shield(flight)

    async def _fly(
        self, name: bytes | int, read: Callable[[], Awaitable[tuple[ProjectKey | None, float]]]
    ) -> ProjectKey | None:
        generation = self._generation
        try:
            who, lasts_s = await read()
        finally:
            if generation == self._generation:
                self._flights.pop(name, None)
        if generation == self._generation:
            while len(self._entries) >= CACHED_MAX:
                del self._entries[next(iter(self._entries))]
            self._entries.pop(name, None)
            until = asyncio.get_running_loop().time() + min(lasts_s, CACHE_S)
            self._entries[name] = _Entry(who, until)
        return who

    async def _read(self, digest: bytes) -> tuple[ProjectKey | None, float]:
        now = self._app.clock.now()
        owner = await projects.key_owner(self._app.db, digest, now)
        until = owner.until if owner else None
        return _project(owner), CACHE_S if until is None else (until - now).total_seconds()

    async def _read_number(self, number: int) -> tuple[ProjectKey | None, float]:
        return _project(await projects.by_number(self._app.db, number)), CACHE_S


def _project(owner: projects.KeyOwner | None) -> ProjectKey | None:
    if owner is None:
        return None
    return ProjectKey(owner.number, owner.id, tuple(owner.channels), owner.rate_limit_per_min)


def _configured(app: App) -> list[tuple[bytes, Operator]]:
    server = app.settings.server
    known = []
    if server.admin_api_key:
        known.append((hash_key(server.admin_api_key.reveal()), Operator(writes=True)))
    if server.readonly_api_key:
        known.append((hash_key(server.readonly_api_key.reveal()), Operator(writes=False)))
    return known
