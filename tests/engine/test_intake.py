"""Intake: idempotency, skips and refusals, through the service on a real database."""

import asyncio

import msgspec
import pytest

from tests.support.scripted import Scripted
from tests.support.world import World, world
from tocsin.domain.errors import Conflict, Invalid
from tocsin.domain.job import State
from tocsin.domain.outcome import ContentRejected


def body(reply: object) -> dict[str, object]:
    return msgspec.json.decode(reply.body)  # type: ignore[attr-defined, no-any-return]


async def test_the_same_key_and_body_give_the_first_answer_again(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        first = await w.send(key="k", channel="email", to="a@example.com", body="Hello")
        again = await w.send(key="k", channel="email", to="a@example.com", body="Hello")
        await w.idle()

        assert (first.replayed, again.replayed) == (False, True)
        assert again.body == first.body
        assert len(w.provider().sent) == 1


async def test_the_same_key_with_another_body_is_refused_and_sends_nothing(
    database_url: str,
) -> None:
    async with world(database_url, Scripted()) as w:
        await w.send(key="k", channel="email", to="a@example.com", body="Hello")

        with pytest.raises(Conflict) as refused:
            await w.send(key="k", channel="email", to="a@example.com", body="Bye")
        await w.idle()

        assert refused.value.code == "idempotency_key_reused"
        assert len(w.provider().sent) == 1


async def test_of_many_concurrent_sends_with_one_key_one_is_stored_and_the_rest_told_to_come_back(
    database_url: str,
) -> None:
    async with world(database_url, Scripted()) as w:
        calls = [
            w.send(key="k", channel="email", to="a@example.com", body="Hello") for _ in range(20)
        ]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        await w.idle()

        refused = [a for a in answers if isinstance(a, Conflict)]
        assert {a.code for a in refused} == {"idempotency_key_in_flight"}
        assert {a.retry_after_s for a in refused} == {1}
        assert len(refused) == 19
        assert len(w.provider().sent) == 1


async def test_a_failed_job_frees_its_key(database_url: str) -> None:
    async with world(database_url, Scripted(ContentRejected("spam"))) as w:
        first = await w.send(key="k", channel="email", to="a@example.com", body="Hello")
        await w.idle()
        again = await w.send(key="k", channel="email", to="a@example.com", body="Hello")
        await w.idle()

        assert not again.replayed
        assert body(again)["job_ids"] != body(first)["job_ids"]
        assert await w.counts() == {State.SENT: 1, State.FAILED: 1}


async def test_a_key_is_free_again_when_its_time_is_over(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        await w.send(key="k", channel="email", to="a@example.com", body="Hello")
        await w.tick(hours=25)
        again = await w.send(key="k", channel="email", to="b@example.com", body="Other")
        await w.idle()

        assert not again.replayed
        assert len(w.provider().sent) == 2


async def test_keys_of_batches_never_meet_whatever_the_ids_contain(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        await w.subscribers(["b-c", "c"])
        await w.batch(key="a", channel="email", subscribers=["b-c"], body="Hello")
        await w.batch(key="a-b", channel="email", subscribers=["c"], body="Hello")
        await w.idle()

        assert len(w.provider().sent) == 2


async def test_a_repeated_batch_is_replayed_and_a_longer_one_makes_only_what_is_new(
    database_url: str,
) -> None:
    async with world(database_url, Scripted()) as w:
        await w.subscribers(["a", "b", "c"])
        first = await w.batch(key="k", channel="email", subscribers=["a", "b"], body="Hello")
        again = await w.batch(key="k", channel="email", subscribers=["a", "b"], body="Hello")
        longer = await w.batch(key="k", channel="email", subscribers=["a", "b", "c"], body="Hello")
        with pytest.raises(Conflict):
            await w.batch(key="k", channel="email", subscribers=["a", "b"], body="Bye")
        await w.idle()

        assert (again.replayed, again.body) == (True, first.body)
        assert (body(longer)["jobs_created"], body(longer)["jobs_deduplicated"]) == (1, 2)
        assert len(w.provider().sent) == 3


async def test_a_person_named_twice_in_a_batch_gets_one_message(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        await w.subscribers(["a"])
        reply = await w.batch(channel="email", subscribers=["a", "a"], body="Hello")
        await w.idle()

        assert body(reply)["subscribers"] == 1
        assert len(w.provider().sent) == 1


async def test_a_batch_says_who_had_no_address_and_who_opted_out(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        await w.subscribers(["a", "out"])
        await w.subscribers(["blank"], email=None)
        await w.prefer("out", "email", enabled=False)

        reply = await w.batch(
            channel="email", subscribers=["a", "out", "blank", "unknown"], body="Hello"
        )
        await w.idle()

        answer = body(reply)
        assert (answer["jobs_created"], answer["jobs_skipped"]) == (1, 1)
        assert answer["jobs_without_address"] == 2
        assert len(w.provider().sent) == 1


async def test_a_channel_that_cannot_reach_the_person_is_skipped_with_its_reason(
    database_url: str,
) -> None:
    async with world(database_url, Scripted()) as w:
        await w.subscribers(["a"], email=None)

        reply = await w.send(channels=["email", "in_app", "sms"], subscriber_id="a", body="Hello")

        answer = body(reply)
        assert answer["channels"] == ["in_app"]
        assert answer["skipped"] == [
            {"channel": "sms", "reason": "sms connector not configured"},
            {"channel": "email", "reason": "subscriber has no email for email"},
        ]


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"channel": "email", "to": "a@example.com"}, "nothing_to_say", "body"),
        ({"channel": "email", "body": "x"}, "no_recipient", "to"),
        ({"channel": "email", "to": "nobody", "body": "x"}, "invalid_address", "to"),
        ({"channel": "pigeon", "to": "a@example.com", "body": "x"}, "unknown_channel", "channels"),
        (
            {"channel": "sms", "to": "+33612345678", "body": "x"},
            "channel_not_configured",
            "channels",
        ),
        (
            {"channel": "email", "to": "a@example.com", "body": "x", "subject": "a\r\nBcc: b@c.de"},
            "header_injection",
            "subject",
        ),
        (
            {"channel": "email", "to": "a@example.com", "body": "x", "cc": ["a@b.c\n"]},
            "header_injection",
            "cc[0]",
        ),
        (
            {"channel": "email", "to": "a@example.com", "body": "x", "priority": "urgentest"},
            "invalid_priority",
            "priority",
        ),
        (
            {"channel": "email", "to": "a@example.com", "body": "x", "topic": "*"},
            "invalid_topic",
            "topic",
        ),
        (
            {"channel": "email", "to": "a@example.com", "template": "none"},
            "template_not_found",
            "template",
        ),
        (
            {
                "channel": "email",
                "to": "a@example.com",
                "body": "x",
                "attachments": [{"filename": "a", "content": "§"}],
            },
            "attachment_not_base64",
            "attachments[0].content",
        ),
        (
            {"channel": "in_app", "subscriber_id": "a", "body": "x", "url": "JavaScript:alert(1)"},
            "unsafe_url",
            "url",
        ),
    ],
)
async def test_bad_input_is_refused_by_its_field_and_leaves_nothing(
    database_url: str, fields: dict[str, object], code: str, field: str
) -> None:
    async with world(database_url, Scripted()) as w:
        with pytest.raises(Invalid) as refused:
            await w.send(**fields)

        assert (refused.value.code, refused.value.field) == (code, field)
        assert await w.jobs_stored() == 0


async def test_a_key_does_not_mind_how_the_channel_is_spelled(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        await w.send(key="k", channel="email", to="a@example.com", body="x")
        again = await w.send(key="k", channels=["email"], to="a@example.com", body="x")

        assert again.replayed


async def test_a_channel_that_the_project_may_not_use_sends_nothing(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        narrow = msgspec.structs.replace(w.who, channels=("in_app",))
        with pytest.raises(Invalid) as refused:
            await w.send(who=narrow, channel="email", to="a@example.com", body="x")
        with pytest.raises(Invalid):
            await w.batch(who=narrow, channel="email", subscribers=["a"], body="x")

        assert refused.value.code == "channel_not_configured"
        assert await w.jobs_stored() == 0


async def test_base64_may_be_wrapped_unpadded_or_empty(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        files = [
            {"filename": f"{n}", "content": c} for n, c in enumerate(["aGVs\r\nbG8=", "aGk", ""])
        ]
        await w.send(channel="email", to="a@example.com", body="x", attachments=files)
        await w.idle()

        (message,) = w.provider().calls[0].messages
        assert [a.content for a in message.attachments] == [b"hello", b"hi", b""]  # type: ignore[union-attr]


async def test_a_text_that_grows_without_bound_is_refused_or_fails_and_stops_nobody(
    database_url: str,
) -> None:
    async with world(database_url, Scripted()) as w:
        grown = {"subject": "x", "vars": {"v": "x" * 500_000}}
        with pytest.raises(Invalid) as refused:
            await w.send(channel="email", to="a@example.com", body="{{v}}" * 100_000, **grown)
        await w.template("bomb", subject="x", body="{{v}}" * 100_000)
        bomb = await w.job(channel="email", to="a@example.com", template="bomb", **grown)
        after = await w.job(channel="email", to="b@example.com", body="x")
        await w.idle()

        assert (refused.value.code, refused.value.field) == ("filled_too_long", "body")
        assert await w.status(bomb) == "failed"
        assert w.provider().sent == [after]


async def test_variables_cannot_become_controls_of_the_message(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        await _send_with_vars(w, {"cc": ["eve@example.com"], "reply_to": "eve@example.com"})
        await w.idle()

        (message,) = w.provider().calls[0].messages
        assert (message.cc, message.reply_to) == ((), None)  # type: ignore[union-attr]


async def _send_with_vars(w: World, values: dict[str, object]) -> None:
    await w.send(channel="email", to="a@example.com", body="Hello", vars=values)
