"""One send from the call to its end, through the real engine."""

from tests.support.scripted import Scripted
from tests.support.world import world
from tocsin.domain.outcome import Transient


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
