"""Log does a provider's work up to the network, and says which jobs it did it for."""

import structlog

from tests.connectors.contract import PRIVATE, call_of
from tocsin.connectors.email.resend.body import body_of
from tocsin.connectors.log import NAMED_MAX, Log


async def test_an_email_costs_the_json_a_provider_would_be_sent() -> None:
    log = Log("email")
    call = call_of(log, 3)
    with structlog.testing.capture_logs() as lines:
        await log.deliver(call)

    assert lines[0]["bytes"] == len(body_of(call.messages))


async def test_one_line_a_call_names_the_first_jobs_and_nothing_they_say() -> None:
    log = Log("sms")
    call = call_of(log, 5)
    with structlog.testing.capture_logs() as lines:
        outcomes = await log.deliver(call)

    assert len(lines) == 1
    # Of the level that is shown when nobody configured one: `tocsin dev` says so.
    assert lines[0]["log_level"] == "info"
    assert lines[0]["channel"] == "sms"
    assert lines[0]["messages"] == len(outcomes) == 5
    assert lines[0]["jobs"] == [str(job_id) for job_id in call.job_ids[:NAMED_MAX]]
    assert PRIVATE not in str(lines)


async def test_ids_of_one_moment_differ() -> None:
    log = Log("email")
    outcomes = await log.deliver(call_of(log, 100))

    assert len({outcome.provider_message_id for outcome in outcomes}) == 100
    assert max(len(outcome.provider_message_id) for outcome in outcomes) <= 16


def test_its_batches_are_as_large_as_it_is_told() -> None:
    assert Log("email").spec.batch_max == 100
    assert Log("email", batch_max=1).spec.batch_max == 1
