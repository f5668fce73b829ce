"""The address of a person on a channel, where notifyd's clients keep it."""

from collections.abc import Mapping
from typing import Any

from tocsin.domain.channel import Channel

#: What is missing, in the words of the answer's skip reason.
FIELD: Mapping[Channel, str] = {
    "email": "email",
    "sms": "phone",
    "whatsapp": "phone",
    "telegram": "data.telegram_chat_id",
    "slack": "data.slack",
    "discord": "data.discord_webhook",
    "in_app": "id",
    "push": "id",
}


def address_on(
    channel: Channel,
    *,
    subscriber_id: str,
    email: str | None,
    phone: str | None,
    data: Mapping[str, Any],
) -> str | None:
    """Where this person is reached; None when that is not known."""
    match channel:
        case "email":
            return email or None
        case "sms" | "whatsapp":
            return phone or None
        case "telegram":
            return _text(data, "telegram_chat_id")
        case "slack":
            keys = ("slack", "slack_webhook", "slack_channel")
            return next((found for key in keys if (found := _text(data, key))), None)
        case "discord":
            return _text(data, "discord_webhook")
        case "in_app" | "push":
            return subscriber_id


def _text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value) or None
    return None
