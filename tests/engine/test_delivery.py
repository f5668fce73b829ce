"""One send from the call to its end, through the real engine."""

from tests.support.scripted import Scripted
from tests.support.world import world
from tocsin.domain.outcome import Transient
from tocsin.store import templates
from tocsin.store.query import Query

INBOX_DATA = Query("inbox_data", "SELECT data FROM inbox_messages")


async def test_an_email_is_sent_once_and_reads_sent(database_url: str) -> None:
    async with world(database_url, Scripted()) as w:
        job = await w.job(
            channel="email",
            to="a@example.com",
            subject="Hi",
            body="Hello {{name}}",
            vars={"name": "Ada"},
        )

        await w.idle()

        assert w.provider().sent == [job]
        assert w.provider().calls[0].messages[0].text == "Hello Ada"
        assert await w.status(job) == "sent"


async def test_a_batch_reaches_every_subscriber_once_in_calls_of_the_providers_size(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(batch_max=100)) as w:
        people = [f"s{i}" for i in range(950)]
        await w.subscribers(people)

        await w.batch(channel="email", subscribers=people, body="Hello")
        await w.idle()

        assert sorted(m.to.address for c in w.provider().calls for m in c.messages) == sorted(
            f"{p}@example.com" for p in people
        )
        assert max(len(c.job_ids) for c in w.provider().calls) == 100


async def test_a_batch_of_large_messages_becomes_calls_of_a_bounded_size(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(batch_max=100)) as w:
        people = [f"s{i}" for i in range(30)]
        await w.subscribers(people)

        await w.batch(channel="email", subscribers=people, body="x" * 1_000_000)
        await w.idle()

        assert [len(call.job_ids) for call in w.provider().calls] == [8, 8, 8, 6]


async def test_what_has_an_attachment_goes_alone(database_url: str) -> None:
    async with world(database_url, Scripted(batch_max=100), workers=0) as w:
        file = [{"filename": "a.txt", "content": "aGk="}]
        for attached in (None, file, None):
            await w.send(channel="email", to="a@example.com", body="x", attachments=attached)
        w.start_worker()
        await w.idle()

        assert [len(call.job_ids) for call in w.provider().calls] == [1, 1, 1]


async def test_a_transient_failure_is_tried_again_when_its_time_has_come(database_url: str) -> None:
    async with world(database_url, Scripted(Transient("provider_down"))) as w:
        job = await w.job(channel="email", to="a@example.com", body="Hello")
        await w.idle()
        assert await w.status(job) == "retry"

        await w.tick(seconds=40)
        await w.idle()

        assert w.provider().sent == [job, job]
        assert await w.status(job) == "sent"


async def test_an_in_app_message_is_in_the_inbox_once(database_url: str) -> None:
    async with world(database_url) as w:
        await w.subscriber("ada")
        job = await w.job(channel="in_app", subscriber_id="ada", body="Hello")

        await w.idle()

        assert await w.status(job) == "sent"
        assert await w.inbox("ada") == [job]


async def test_what_a_browser_sees_of_a_message_holds_none_of_its_variables(
    database_url: str,
) -> None:
    async with world(database_url) as w:
        await w.subscriber("ada")
        await w.send(
            channel="in_app",
            subscriber_id="ada",
            body="Reset",
            topic="account",
            vars={"reset_link": "https://example.com/secret", "cc": ["eve@example.com"]},
        )
        await w.idle()

        assert await w.db.value(INBOX_DATA) == '{"topic":"account"}'


async def test_a_template_that_changes_after_the_enqueue_is_used_as_it_is_at_the_send(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(), workers=0) as w:
        await w.template("welcome", body="Hello {{name}}", subject="Hi")
        await w.send(channel="email", to="a@example.com", template="welcome", vars={"name": "Ada"})
        await w.template("welcome", body="Bye {{name}}", subject="Hi")
        w.start_worker()
        await w.idle()

        assert w.provider().calls[0].messages[0].text == "Bye Ada"


async def test_a_template_that_is_gone_at_the_send_fails_the_job_and_sends_nothing(
    database_url: str,
) -> None:
    async with world(database_url, Scripted(), workers=0) as w:
        await w.template("welcome", body="Hello", subject="Hi")
        job = await w.job(channel="email", to="a@example.com", template="welcome")
        await templates.delete(w.db, w.who.number, "welcome")
        w.start_worker()
        await w.idle()

        assert w.provider().calls == []
        assert await w.status(job) == "failed"
