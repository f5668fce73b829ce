"""Preferences: may this reach this person? An opt-out in any scope wins over an opt-in in another."""

from collections.abc import Iterable

from msgspec import Struct


class Preference(Struct, frozen=True, array_like=True):
    """One choice of a person. topic and workflow are '' when the choice is not about one."""

    channel: str
    topic: str
    workflow: str
    enabled: bool


def allows(choices: Iterable[Preference], channel: str, topic: str, workflow: str) -> bool:
    """Three scopes are asked alone: everything, the topic, the workflow (or template); each must allow.

    Within a scope the choice for this very channel stands before the one for '*'; no choice allows.
    """
    exact: dict[tuple[str, str], bool] = {}
    star: dict[tuple[str, str], bool] = {}
    for choice in choices:
        scope = (choice.topic, choice.workflow)
        if choice.channel == channel:
            exact[scope] = choice.enabled
        elif choice.channel == "*":
            star[scope] = choice.enabled
    scopes = [("", "")]
    if topic:
        scopes.append((topic, ""))
    if workflow:
        scopes.append(("", workflow))
    return all(exact.get(scope, star.get(scope, True)) for scope in scopes)
