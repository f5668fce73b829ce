"""Preferences of a subscriber: read them, change some of them."""

import re
from typing import Annotated, Final

from msgspec import Meta, Struct

from tocsin.domain.channel import CHANNELS, channel_named
from tocsin.domain.errors import Invalid, NotFound
from tocsin.domain.preferences import Preference
from tocsin.domain.request import PreferenceIn
from tocsin.service.app import App
from tocsin.service.principal import ProjectKey
from tocsin.store import preferences, subscribers

CHOICES_MAX: Final = 500
WORKFLOW_ID_MAX: Final = 256
_TOPIC = re.compile(r"[a-z0-9_.:-]{1,64}")


class PreferencesIn(Struct, frozen=True):
    preferences: Annotated[list[PreferenceIn], Meta(max_length=CHOICES_MAX)]


class PreferenceOut(Struct, frozen=True):
    channel: str
    workflow_id: str | None
    topic: str | None
    enabled: bool


class PreferencesAnswer(Struct, frozen=True):
    preferences: list[PreferenceOut]


class PreferencesSaved(Struct, frozen=True):
    success: bool
    updated: int


def topic_named(text: str, field: str) -> str:
    """A topic in its one form, lower case. Raises Invalid."""
    topic = text.strip().lower()
    if not _TOPIC.fullmatch(topic):
        raise Invalid(
            "invalid_topic",
            f"{field} is not a topic",
            remedy="use 1 to 64 of the characters a-z 0-9 - _ . :",
            field=field,
        )
    return topic


async def of_subscriber(app: App, who: ProjectKey, subscriber_id: str) -> PreferencesAnswer:
    """What a person chose; empty for someone who never chose."""
    found = await preferences.of_subscriber(app.db, who.number, subscriber_id)
    return PreferencesAnswer(
        [PreferenceOut(p.channel, p.workflow or None, p.topic or None, p.enabled) for p in found]
    )


async def change(
    app: App, who: ProjectKey, subscriber_id: str, wanted: PreferencesIn
) -> PreferencesSaved:
    """Store these choices and leave the others; the last of two about the same thing counts."""
    chosen = {}
    for index, item in enumerate(wanted.preferences):
        choice = _choice(item, f"preferences[{index}]")
        chosen[choice.channel, choice.topic, choice.workflow] = choice
    async with app.db.transaction() as tx:
        if not await subscribers.lock(tx, who.number, subscriber_id):
            raise NotFound(
                "subscriber_not_found",
                "Subscriber not found",
                remedy="create the subscriber first: POST /v1/subscribers",
            )
        await preferences.upsert(
            tx, who.number, subscriber_id, list(chosen.values()), app.clock.now()
        )
    return PreferencesSaved(success=True, updated=len(chosen))


def _choice(item: PreferenceIn, field: str) -> Preference:
    channel = "*" if item.channel.strip() == "*" else channel_named(item.channel)
    if channel is None:
        raise Invalid(
            "unknown_channel",
            f"{field}.channel is not a channel",
            remedy=f"use * or one of {', '.join(CHANNELS)}",
            field=f"{field}.channel",
        )
    # An empty topic is somebody's unset variable, and would mean everything on the channel.
    topic = "" if item.topic is None else topic_named(item.topic, f"{field}.topic")
    if item.workflow_id and len(item.workflow_id) > WORKFLOW_ID_MAX:
        raise Invalid(
            "workflow_id_too_long",
            f"{field}.workflow_id is longer than {WORKFLOW_ID_MAX} characters",
            remedy="use the workflow's id",
            field=f"{field}.workflow_id",
        )
    return Preference(channel, topic, item.workflow_id or "", item.enabled)
