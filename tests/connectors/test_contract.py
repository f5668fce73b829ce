"""What holds for every connector, whatever its provider does."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date

import pytest
import structlog
from msgspec.structs import replace

from tests.connectors.contract import PRIVATE, SECRET, THROTTLE_S, Bench, Subject, Trouble, call_of
from tests.connectors.subjects import SUBJECTS
from tocsin.domain.outcome import Accepted, Misconfigured, Outcome, Throttled, Transient, Unknown

every = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
deduping = pytest.mark.parametrize(
    "subject",
    [subject for subject in SUBJECTS if subject.dedupes],
    ids=lambda subject: subject.name,
)
BOUND_S = 10.0
COUNTS = pytest.mark.parametrize("count", [1, 2, 7])


def troubled(*troubles: Trouble) -> pytest.MarkDecorator:
    """Every connector whose provider can make one of these troubles, with each it can make."""
    pairs = [(subject, trouble) for subject in SUBJECTS for trouble in troubles]
    return pytest.mark.parametrize(
        ("subject", "trouble"),
        [
            pytest.param(subject, trouble, id=f"{subject.name}-{trouble.name}")
            for subject, trouble in pairs
            if trouble in subject.troubles
        ],
    )


@asynccontextmanager
async def listening(subject: Subject, trouble: Trouble, caplog) -> AsyncIterator[Bench]:
    """The bench, with every log line of every level heard: none may hold a secret or anything private."""
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as lines:
        async with subject.open(trouble) as bench:
            yield bench
    heard = f"{lines} {caplog.text}".lower()
    assert SECRET not in heard
    assert PRIVATE not in heard


async def outcomes_of(bench: Bench, count: int) -> list[Outcome]:
    outcomes = await bench.connector.deliver(call_of(bench.connector, count))
    said = repr(outcomes).lower()
    assert len(outcomes) == count
    assert SECRET not in said
    assert PRIVATE not in said
    assert "@" not in said
    return outcomes


# ------------------------------------------------------------------------------ what it is


@every
async def test_its_spec_tells_the_engine_what_it_must_know(subject: Subject) -> None:
    async with subject.open(Trouble.NONE) as bench:
        spec = bench.connector.spec

    assert spec.dedupes == subject.dedupes
    assert re.fullmatch(r"[a-z0-9_]+", spec.name)
    assert spec.title
    assert spec.batch_max >= 1
    assert spec.in_flight_max >= 1
    assert date.fromisoformat(spec.checked) >= date(2026, 11, 30)
    assert spec.docs.startswith("https://") or not subject.troubles


# ------------------------------------------------------------------------------ it is taken


@every
async def test_every_job_is_accepted_and_the_provider_has_each_once(subject, caplog) -> None:
    async with listening(subject, Trouble.NONE, caplog) as bench:
        for count in {1, 2, bench.connector.spec.batch_max}:
            if count > bench.connector.spec.batch_max:
                continue
            before = len(bench.accepted()) if bench.accepted else 0
            call = call_of(bench.connector, count)

            outcomes = await bench.connector.deliver(call)

            assert len(outcomes) == count
            assert all(isinstance(outcome, Accepted) for outcome in outcomes)
            if bench.accepted:
                assert bench.accepted()[before:] == list(call.job_ids)


@every
async def test_outcomes_stand_in_the_order_of_the_jobs(subject, caplog) -> None:
    async with listening(subject, Trouble.NONE, caplog) as bench:
        call = call_of(bench.connector, min(7, bench.connector.spec.batch_max))
        outcomes = await bench.connector.deliver(call)

        if bench.job_of:
            found = [bench.job_of(outcome.provider_message_id) for outcome in outcomes]
            assert found == list(call.job_ids)


# ------------------------------------------------------------------------------ it is not


@COUNTS
@troubled(Trouble.KEY_REFUSED)
async def test_a_refused_key_is_our_configuration_and_fails_no_job(
    subject, trouble, count, caplog
) -> None:
    async with listening(subject, trouble, caplog) as bench:
        outcomes = await outcomes_of(bench, count)

    assert all(isinstance(outcome, Misconfigured) and outcome.detail for outcome in outcomes)


@COUNTS
@troubled(Trouble.THROTTLED)
async def test_a_burst_limit_rests_exactly_as_long_as_the_provider_says(
    subject, trouble, count, caplog
) -> None:
    async with listening(subject, trouble, caplog) as bench:
        outcomes = await outcomes_of(bench, count)

    assert outcomes == [Throttled(THROTTLE_S)] * count


@COUNTS
@troubled(Trouble.FAILING, Trouble.REFUSED, Trouble.MALFORMED_FAILURE)
async def test_what_certainly_did_not_work_is_tried_again(subject, trouble, count, caplog) -> None:
    async with listening(subject, trouble, caplog) as bench:
        outcomes = await outcomes_of(bench, count)
        taken = bench.accepted() if bench.accepted else []

    assert all(isinstance(outcome, Transient) and outcome.code for outcome in outcomes)
    assert taken == []


@COUNTS
@troubled(Trouble.SILENT, Trouble.LOST, Trouble.MALFORMED)
async def test_what_may_have_worked_is_unknown(subject, trouble, count, caplog) -> None:
    async with listening(subject, trouble, caplog) as bench:
        outcomes = await outcomes_of(bench, count)

    assert all(isinstance(outcome, Unknown) and outcome.code for outcome in outcomes)


# ------------------------------------------------------------------------------ it dedupes


@deduping
@COUNTS
async def test_frozen_bytes_are_the_same_every_time(subject, count) -> None:
    async with subject.open(Trouble.NONE) as bench:
        call = call_of(bench.connector, count)

        assert bench.connector.freeze(call.messages) == call.frozen


@deduping
@COUNTS
async def test_a_repeat_of_a_frozen_call_without_its_messages_is_not_sent_twice(
    subject, count
) -> None:
    async with subject.open(Trouble.NONE) as bench:
        call = call_of(bench.connector, count)
        first = await bench.connector.deliver(call)
        again = await bench.connector.deliver(replace(call, messages=()))

        assert again == first
        assert bench.accepted() == list(call.job_ids)


@pytest.mark.parametrize("trouble", [Trouble.LOST, Trouble.SILENT, Trouble.MALFORMED])
@deduping
@COUNTS
async def test_a_repeat_after_an_unknown_outcome_finds_out_and_sends_nothing(
    subject, trouble, count
) -> None:
    async with subject.open(trouble) as bench:
        call = call_of(bench.connector, count)
        unknown = await bench.connector.deliver(call)
        async with asyncio.timeout(BOUND_S):
            known = await bench.connector.deliver(replace(call, messages=()))
            # As long as the provider has not seen that we left, it says the first try is running.
            while all(isinstance(outcome, Transient) for outcome in known):
                known = await bench.connector.deliver(replace(call, messages=()))

        assert all(isinstance(outcome, Unknown) for outcome in unknown)
        assert all(isinstance(outcome, Accepted) for outcome in known)
        assert bench.accepted() == list(call.job_ids)
