"""Preferences: an opt-out in any scope wins; within one, the very channel stands before '*'."""

from hypothesis import given
from hypothesis import strategies as st

from tocsin.domain.preferences import Preference, allows

CHANNELS = st.sampled_from(["email", "sms", "*"])
SCOPES = st.sampled_from([("", ""), ("news", ""), ("", "welcome"), ("other", "")])
CHOICES = st.dictionaries(st.tuples(CHANNELS, SCOPES), st.booleans()).map(
    lambda found: [Preference(c, t, w, enabled) for (c, (t, w)), enabled in found.items()]
)


def test_without_a_choice_everything_is_allowed() -> None:
    assert allows([], "email", "news", "welcome")


def test_an_opt_out_of_everything_is_not_undone_by_a_topic() -> None:
    choices = [Preference("*", "", "", False), Preference("email", "news", "", True)]

    assert not allows(choices, "email", "news", "")


def test_the_very_channel_stands_before_the_star() -> None:
    choices = [Preference("*", "", "", False), Preference("email", "", "", True)]

    assert allows(choices, "email", "", "")
    assert not allows(choices, "sms", "", "")


def test_a_topic_and_a_workflow_of_one_name_do_not_meet() -> None:
    assert allows([Preference("*", "welcome", "", False)], "email", "", "welcome")


@given(CHOICES)
def test_a_refusal_on_the_channel_itself_is_never_overruled(choices: list[Preference]) -> None:
    refused = any(
        c.channel == "email" and not c.enabled and (c.topic, c.workflow) in {("", ""), ("news", "")}
        for c in choices
    )

    if refused:
        assert not allows(choices, "email", "news", "")


@given(CHOICES)
def test_choices_about_other_topics_and_channels_change_nothing(
    choices: list[Preference],
) -> None:
    about = [c for c in choices if c.channel in ("email", "*") and c.topic != "other"]

    assert allows(choices, "email", "news", "welcome") == allows(about, "email", "news", "welcome")
