"""The inbound rate limit: a minute's worth at once, then at its rate, never more."""

from hypothesis import given
from hypothesis import strategies as st

from tests.faces.http.conftest import Api
from tocsin.domain.errors import RateLimited
from tocsin.faces.http import limits
from tocsin.faces.http.limits import Buckets


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def passes(buckets: Buckets, caller: object, per_min: int | None) -> int | None:
    """None when it passes, else the seconds to wait."""
    try:
        buckets.take(caller, per_min)
    except RateLimited as error:
        return error.retry_after_s
    return None


def test_a_limit_of_zero_blocks_everything_and_none_nothing() -> None:
    buckets = Buckets(Time())

    assert passes(buckets, 1, 0) == limits.BLOCKED_RETRY_S
    assert all(passes(buckets, 1, None) is None for _ in range(10_000))


def test_a_full_bucket_is_a_minute_deep_and_refills_at_its_rate() -> None:
    time = Time()
    buckets = Buckets(time)

    assert [passes(buckets, 1, 60) for _ in range(61)] == [None] * 60 + [1]
    time.now += 0.9
    assert passes(buckets, 1, 60) == 1
    time.now += 0.1001
    assert passes(buckets, 1, 60) is None
    assert passes(buckets, 1, 60) == 1
    assert passes(buckets, 2, 60) is None


@given(
    st.integers(1, 300),
    st.lists(st.floats(0, 20, allow_nan=False), min_size=1, max_size=300),
)
def test_no_window_of_a_minute_sees_more_than_twice_the_limit(
    per_min: int, pauses: list[float]
) -> None:
    time = Time()
    buckets = Buckets(time)
    passed: list[float] = []
    for pause in pauses:
        time.now += pause / per_min
        if passes(buckets, 1, per_min) is None:
            passed.append(time.now)

    for start in passed:
        assert sum(start <= at < start + 60 for at in passed) <= 2 * per_min


def test_waiting_as_long_as_told_is_enough() -> None:
    time = Time()
    buckets = Buckets(time)
    for _ in range(7):
        passes(buckets, 1, 7)
    wait_s = passes(buckets, 1, 7)
    assert wait_s is not None
    time.now += wait_s

    assert passes(buckets, 1, 7) is None


def test_only_so_many_callers_are_remembered(monkeypatch: object) -> None:
    buckets = Buckets(Time())
    for caller in range(limits.CALLERS_MAX + 50):
        buckets.take(caller, 1)

    assert len(buckets._full_at) == limits.CALLERS_MAX


async def test_a_project_over_its_limit_gets_a_429_that_says_when_to_come_back(api: Api) -> None:
    small = await api.project("small", rate_limit_per_min=2)
    statuses = [(await small.get("/v1/channels")).status for _ in range(2)]
    over = await small.post("/v1/send", {})

    assert statuses == [200, 200]
    assert over.status == 429
    assert over.json["error"] == "Rate limit exceeded"
    assert int(over.headers["retry-after"]) > 0
    assert over.headers["ratelimit-limit"] == "2"
    assert over.headers["ratelimit-remaining"] == "0"
    assert (await api.acme.get("/v1/channels")).status == 200


async def test_a_project_with_a_limit_of_zero_is_blocked_until_it_has_another(api: Api) -> None:
    blocked = await api.project("blocked", rate_limit_per_min=0)
    assert (await blocked.get("/v1/channels")).status == 429

    await api.admin.patch("/v1/admin/projects/blocked", {"rate_limit_per_min": 100})

    assert (await blocked.get("/v1/channels")).status == 200


async def test_a_subscriber_has_a_limit_of_its_own(api: Api) -> None:
    blocked = await api.project("quiet", rate_limit_per_min=1)
    token = (await blocked.post("/v1/auth/subscriber-token", {"subscriber_id": "ada"})).json
    browser = api.nobody.with_headers(authorization=f"Bearer {token['token']}")

    assert (await blocked.get("/v1/channels")).status == 429
    assert (await browser.get("/v1/inbox/ada")).status == 200
