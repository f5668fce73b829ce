"""Unsubscribe links: show what a link is about, and act on it only when it is confirmed (RFC 8058)."""

from datetime import datetime, timedelta
from typing import Final

from tocsin.domain.errors import NotFound
from tocsin.service.app import App
from tocsin.service.suppressions import masked, suppress
from tocsin.wire import tokens

LINK_LASTS: Final = timedelta(days=400)


def token(key: bytes, project: int, email: str, now: datetime) -> str:
    """The token of the link in a message to this address; key: derived once, for a campaign needs many."""
    expires = int((now + LINK_LASTS).timestamp())
    return tokens.sign_unsubscribe(key, tokens.Unsubscribe(project, "email", email, expires))


def _read(app: App, token: str) -> tokens.Unsubscribe:
    key = tokens.derive_key(app.signing_secret, "unsubscribe")
    link = tokens.read_unsubscribe(key, token, app.clock.now().timestamp())
    if link is None:
        raise NotFound(
            "unknown_link",
            "This link is not valid or has expired",
            remedy="use the link of a newer message",
        )
    return link


def described(app: App, token: str) -> str:
    """The masked address a link is about; nothing changes. Raises NotFound."""
    return masked(_read(app, token).address)


async def confirm(app: App, token: str) -> str:
    """No more marketing to the address of this link; its masked form. Repeating it is harmless."""
    link = _read(app, token)
    await suppress(app, link.project, link.address, scope="marketing", reason="unsubscribe")
    return masked(link.address)
