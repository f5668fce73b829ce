"""Group commit, with a commit whose end these tests decide."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.domain.errors import Conflict, Unavailable
from tocsin.store.group_commit import ISOLATING_COMMITS_MAX, GroupCommit

BOUND_S = 10.0


class Sink:
    """Each commit waits until it is let go; it answers with its rows, ten times as large."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.gates: list[asyncio.Future[Exception | None]] = []
        self.stored: list[int] = []
        self.began = asyncio.Event()
        self.poison: dict[int, Exception] = {}
        self.open = False

    async def commit(self, rows: list[int]) -> Sequence[int | Exception]:
        self.groups.append(rows)
        gate = asyncio.get_running_loop().create_future()
        self.gates.append(gate)
        self.began.set()
        if not self.open and (error := await gate):
            raise error
        for row in rows:
            if row in self.poison:
                raise self.poison[row]
        self.stored += rows
        return [row * 10 for row in rows]

    async def until_commit(self, number: int) -> None:
        async with asyncio.timeout(BOUND_S):
            while len(self.groups) < number:
                self.began.clear()
                await self.began.wait()

    def let_go(self, number: int, error: Exception | None = None) -> None:
        self.gates[number - 1].set_result(error)


@pytest.fixture
def sink() -> Sink:
    return Sink()


def group(sink: Sink, **limits) -> GroupCommit[int, int]:
    made = GroupCommit(sink.commit, **{"rows_max": 100, "queue_max": 1000, **limits})
    made.start()
    return made


def submitting(commits: GroupCommit[int, int], *rows: int) -> list[asyncio.Task[int]]:
    return [asyncio.create_task(commits.submit(row)) for row in rows]


async def test_what_arrives_during_a_commit_goes_in_the_next_one(sink: Sink) -> None:
    commits = group(sink)
    first = submitting(commits, 1)
    await sink.until_commit(1)
    later = submitting(commits, 2, 3, 4)
    await asyncio.sleep(0)
    sink.let_go(1)
    await sink.until_commit(2)
    sink.let_go(2)

    assert await asyncio.gather(*first, *later) == [10, 20, 30, 40]
    assert sink.groups == [[1], [2, 3, 4]]


async def test_what_arrives_in_one_turn_of_the_loop_goes_in_one_commit(sink: Sink) -> None:
    sink.open = True
    commits = group(sink)

    assert await asyncio.gather(*submitting(commits, *range(50))) == [n * 10 for n in range(50)]
    assert sink.groups == [list(range(50))]


async def test_a_commit_holds_no_more_rows_than_its_bound(sink: Sink) -> None:
    sink.open = True
    commits = group(sink, rows_max=20)
    await asyncio.gather(*submitting(commits, *range(50)))

    assert [len(rows) for rows in sink.groups] == [20, 20, 10]


async def test_rows_of_one_caller_stay_together_in_order_even_beyond_the_bound(sink: Sink) -> None:
    sink.open = True
    commits = group(sink, rows_max=20)
    many = asyncio.create_task(commits.submit_many(range(100, 150)))
    single = submitting(commits, 1)

    assert await many == [row * 10 for row in range(100, 150)]
    assert await single[0] == 10
    assert sink.groups == [list(range(100, 150)), [1]]
    assert await commits.submit_many([]) == []


async def test_rows_count_for_what_they_weigh(sink: Sink) -> None:
    sink.open = True
    commits = group(sink, rows_max=10, weigh=lambda row: row)
    await asyncio.gather(*submitting(commits, 4, 5, 6, 3))

    assert sink.groups == [[4, 5], [6, 3]]


async def test_as_many_commits_run_at_once_as_allowed(sink: Sink) -> None:
    commits = group(sink, rows_max=1, parallel=2)
    tasks = submitting(commits, 1, 2, 3)
    await sink.until_commit(2)
    await asyncio.sleep(0)

    assert sink.groups == [[1], [2]]
    sink.let_go(2)
    await sink.until_commit(3)
    sink.let_go(3)
    sink.let_go(1)
    assert await asyncio.gather(*tasks) == [10, 20, 30]


async def test_a_full_queue_refuses_with_a_time_to_come_back(sink: Sink) -> None:
    commits = group(sink, rows_max=1, queue_max=3)
    tasks = submitting(commits, 1)
    await sink.until_commit(1)
    tasks += submitting(commits, 2, 3, 4)
    await asyncio.sleep(0)
    assert commits.waiting == 3

    with pytest.raises(Unavailable) as refused:
        await commits.submit(5)
    assert (refused.value.code, refused.value.retry_after_s) == ("overloaded", 1)
    sink.open = True
    sink.let_go(1)
    assert await asyncio.gather(*tasks) == [10, 20, 30, 40]
    assert commits.waiting == 0


async def test_a_group_larger_than_the_queue_is_taken_when_the_queue_is_empty(sink: Sink) -> None:
    sink.open = True
    commits = group(sink, queue_max=3)

    assert await commits.submit_many([1, 2, 3, 4]) == [10, 20, 30, 40]


async def test_an_answer_that_is_an_error_reaches_its_own_caller_only() -> None:
    async def commit(rows: list[int]) -> list[int | Exception]:
        return [Conflict("taken", "taken") if row == 2 else row for row in rows]

    commits = GroupCommit(commit, rows_max=10, queue_max=10)
    commits.start()
    answers = await asyncio.gather(*submitting(commits, 1, 2, 3), return_exceptions=True)

    assert answers[0] == 1
    assert isinstance(answers[1], Conflict)
    assert answers[2] == 3
    many = await commits.submit_many([1, 2])
    assert many[0] == 1
    assert isinstance(many[1], Conflict)


async def test_a_row_that_spoils_its_commit_fails_alone(sink: Sink) -> None:
    sink.open = True
    sink.poison = {7: ValueError("seven")}
    commits = group(sink)
    answers = await asyncio.gather(*submitting(commits, *range(20)), return_exceptions=True)

    assert isinstance(answers[7], ValueError)
    assert [answer for n, answer in enumerate(answers) if n != 7] == [
        n * 10 for n in range(20) if n != 7
    ]
    assert sorted(sink.stored) == [n for n in range(20) if n != 7]


async def test_an_unknown_outcome_is_never_tried_again(sink: Sink) -> None:
    commits = group(sink)
    tasks = submitting(commits, 1, 2, 3)
    await sink.until_commit(1)
    sink.let_go(1, Unavailable("database_lost", "lost"))
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(answer) for answer in answers] == [Unavailable] * 3
    assert sink.groups == [[1, 2, 3]]


async def test_the_search_for_spoiled_rows_is_bounded(sink: Sink) -> None:
    sink.open = True
    sink.poison = {row: ValueError("bad") for row in range(500)}
    commits = group(sink, rows_max=500)
    answers = await asyncio.gather(*submitting(commits, *range(500)), return_exceptions=True)

    assert {type(answer) for answer in answers} == {ValueError}
    # The commits of the search, and one for each half that was open when it ended.
    assert len(sink.groups) <= 2 * ISOLATING_COMMITS_MAX


async def test_a_commit_that_answers_too_few_rows_fails_all_and_says_so() -> None:
    async def commit(rows: list[int]) -> list[int]:
        return rows[1:]

    commits = GroupCommit(commit, rows_max=10, queue_max=10, name="intake")
    commits.start()
    with pytest.raises(RuntimeError, match="intake: 1 answers for 2 rows"):
        await commits.submit_many([1, 2])


async def test_a_caller_that_gives_up_while_waiting_withdraws_its_row(sink: Sink) -> None:
    commits = group(sink)
    first = submitting(commits, 1)
    await sink.until_commit(1)
    second, third = submitting(commits, 2, 3)
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    sink.open = True
    sink.let_go(1)

    assert await asyncio.gather(*first, third) == [10, 30]
    assert sink.stored == [1, 3]
    assert commits.waiting == 0


async def test_a_caller_that_gives_up_during_its_commit_disturbs_nobody(sink: Sink) -> None:
    commits = group(sink)
    first, second = submitting(commits, 1, 2)
    await sink.until_commit(1)
    first.cancel()
    await asyncio.wait([first])
    sink.let_go(1)

    assert await second == 20
    assert sink.stored == [1, 2]


async def test_stopping_answers_all_that_was_taken_and_refuses_the_rest(sink: Sink) -> None:
    commits = group(sink, rows_max=2)
    tasks = submitting(commits, 1, 2, 3)
    await sink.until_commit(1)
    stopping = asyncio.create_task(commits.stop())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="stopping"):
        await commits.submit(4)
    sink.open = True
    sink.let_go(1)
    async with asyncio.timeout(BOUND_S):
        await stopping

    assert [task.result() for task in tasks] == [10, 20, 30]
    commits.start()
    assert await commits.submit(5) == 50


async def test_before_it_is_started_it_takes_nothing(sink: Sink) -> None:
    commits = GroupCommit(sink.commit, rows_max=1, queue_max=1)
    with pytest.raises(Unavailable):
        await commits.submit(1)


async def test_a_commit_that_is_cancelled_leaves_nobody_waiting(sink: Sink) -> None:
    commits = group(sink, rows_max=1)
    tasks = submitting(commits, 1, 2)
    await sink.until_commit(1)
    (running,) = commits._tasks
    running.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [getattr(answer, "code", None) for answer in answers] == ["interrupted"] * 2
    assert commits.waiting == 0


async def test_a_row_submitted_in_the_moment_a_drain_ends_is_committed() -> None:
    # The answer of one commit makes its caller submit again, in every later turn of the loop
    # until the draining task has left for good.
    async def commit(rows: list[int]) -> list[int]:
        return rows

    commits = GroupCommit(commit, rows_max=10, queue_max=10)
    commits.start()
    for turns in range(8):
        await commits.submit(1)
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(BOUND_S):
            assert await commits.submit(2) == 2


class Play:
    """Callers, commits and the loop, moved one step at a time."""

    def __init__(self, rows_max: int, parallel: int) -> None:
        self.sink = Sink()
        self.commits = group(self.sink, rows_max=rows_max, parallel=parallel)
        self.callers: list[asyncio.Task[list[int | Exception]]] = []
        self.rows = 0

    async def submit(self, count: int) -> None:
        rows = list(range(self.rows, self.rows + count))
        self.rows += count
        self.callers.append(asyncio.create_task(self.commits.submit_many(rows)))

    async def turn(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    async def cancel(self, number: int) -> None:
        for caller in self.callers[number : number + 1]:
            caller.cancel()

    async def commit(self, error: Exception | None) -> None:
        waiting = [gate for gate in self.sink.gates if not gate.done()]
        for gate in waiting[:1]:
            gate.set_result(error)

    async def end(self) -> list[list[int | Exception] | BaseException]:
        await asyncio.sleep(0)
        self.sink.open = True
        for gate in self.sink.gates:
            if not gate.done():
                gate.set_result(None)
        async with asyncio.timeout(BOUND_S):
            answers = await asyncio.gather(*self.callers, return_exceptions=True)
            await self.commits.stop()
        return answers


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just(Play.submit), st.integers(1, 4)),
            st.tuples(st.just(Play.turn), st.integers(1, 3)),
            st.tuples(st.just(Play.cancel), st.integers(0, 20)),
            st.tuples(st.just(Play.commit), st.sampled_from([None, Unavailable("lost", "lost")])),
        ),
        max_size=60,
    ),
    rows_max=st.integers(1, 5),
    parallel=st.integers(1, 3),
)
async def test_in_any_order_of_events_every_row_is_stored_once_or_its_caller_knows(
    steps, rows_max, parallel
) -> None:
    play = Play(rows_max, parallel)
    for step, argument in steps:
        await step(play, argument)
    answers = await play.end()

    stored = play.sink.stored
    assert len(stored) == len(set(stored))
    acknowledged = {row // 10 for answer in answers if isinstance(answer, list) for row in answer}
    assert acknowledged <= set(stored)
    refused = [answer for answer in answers if not isinstance(answer, list)]
    assert {type(answer) for answer in refused} <= {asyncio.CancelledError, Unavailable}
    assert play.commits.waiting == 0
