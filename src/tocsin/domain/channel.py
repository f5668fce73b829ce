"""Channels: the ways a message reaches a person, notifyd's aliases included."""

from typing import Final, Literal

Channel = Literal["email", "sms", "whatsapp", "in_app", "push", "telegram", "slack", "discord"]

CHANNELS: Final[tuple[Channel, ...]] = (
    "email", "sms", "whatsapp", "in_app", "push", "telegram", "slack", "discord",
)  # fmt: skip
_ALIASES: Final[dict[str, Channel]] = {"inapp": "in_app", "in-app": "in_app", "fcm": "push"}
_NAMES: Final[dict[str, Channel]] = {name: name for name in CHANNELS} | _ALIASES


def channel_named(name: str) -> Channel | None:
    """The channel of a name or alias, None when there is none."""
    return _NAMES.get(name.strip().lower())
