"""What a patch makes of a message, and what it does to the count."""

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tests.support.clock import START
from tocsin.service.inbox import InboxPatch, patched
from tocsin.store.inbox import State

LATER = START + timedelta(hours=1)
times = st.sampled_from([None, START])
patches = st.builds(
    InboxPatch,
    read=st.sampled_from([UNSET, True, False]),
    archived=st.sampled_from([UNSET, True, False]),
    is_todo=st.sampled_from([UNSET, True, False]),
)


@st.composite
def inboxes(draw: st.DrawFn) -> list[State]:
    """Messages of one inbox; each state carries the same version and count."""
    messages = draw(st.lists(st.tuples(times, times, st.booleans()), min_size=1, max_size=5))
    unread = sum(read is None and archived is None for read, archived, _ in messages)
    return [State(10, unread, read, archived, todo) for read, archived, todo in messages]


@given(inboxes(), st.lists(st.tuples(st.integers(0, 4), patches), max_size=12))
def test_the_count_is_always_the_number_of_messages_neither_read_nor_archived(
    messages: list[State], steps: list[tuple[int, InboxPatch]]
) -> None:
    for place, patch in steps:
        at = place % len(messages)
        after, kinds = patched(messages[at], patch, LATER)
        assert after.version == messages[at].version + len(kinds)
        messages[at] = after
        messages = [
            msgspec.structs.replace(m, version=after.version, unread=after.unread) for m in messages
        ]
        assert after.unread == sum(m.read_at is None and m.archived_at is None for m in messages)


@given(inboxes(), patches)
def test_a_patch_does_what_it_says_and_repeating_it_changes_nothing(
    messages: list[State], patch: InboxPatch
) -> None:
    after, _ = patched(messages[0], patch, LATER)

    assert patch.read in (UNSET, after.read_at is not None)
    assert patch.archived in (UNSET, after.archived_at is not None)
    assert patch.is_todo in (UNSET, after.is_todo)
    assert patched(after, patch, LATER) == (after, [])


def test_a_message_keeps_the_time_it_was_first_read() -> None:
    state = State(1, 0, START, None, is_todo=False)

    after, kinds = patched(state, InboxPatch(read=True), LATER)

    assert (after.read_at, kinds) == (START, [])
