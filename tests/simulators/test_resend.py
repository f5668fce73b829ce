"""The simulated Resend answers as Resend does, so that what passes against it passes there."""

import asyncio
import hashlib

import msgspec
import pytest

from tests.simulators.resend_bench import BOUND_S, MAIL, name_of, resend
from tocsin.simulators.asgi import HOST
from tocsin.simulators.fault import Fault
from tocsin.simulators.resend import Limits

# ------------------------------------------------------------------------------ one mail


async def test_a_mail_is_accepted_and_journalled_with_its_key_hash_tags_and_time() -> None:
    async with resend() as bench:
        reply = await bench.post(MAIL, key="k1")
        (entry,) = bench.simulator.journal.entries

    assert reply.status == 200
    assert msgspec.json.decode(reply.body) == {"id": entry.id}
    assert (entry.key, entry.tags, entry.batch) == ("k1", {"tocsin_job_id": "job-1"}, False)
    assert entry.sha256 == hashlib.sha256(msgspec.json.encode(MAIL)).hexdigest()
    assert entry.at.tzinfo is not None


@pytest.mark.parametrize(
    ("change", "status", "name", "word"),
    [
        ({"from": None}, 422, "missing_required_field", "`from`"),
        ({"to": []}, 422, "missing_required_field", "`to`"),
        ({"subject": ""}, 422, "missing_required_field", "`subject`"),
        ({"text": None}, 422, "missing_required_field", "`html`"),
        ({"to": ["nobody"]}, 422, "validation_error", "`to`"),
        ({"to": "jané@example.com"}, 422, "validation_error", "`to`"),
        ({"to": [7]}, 422, "validation_error", "`to`"),
        ({"to": ["a@example.com"] * 51}, 422, "validation_error", "`to`"),
        ({"cc": ["Jane <nobody>"]}, 422, "validation_error", "`cc`"),
        ({"headers": {"X-A": 7}}, 422, "invalid_parameter", "`headers`"),
        ({"tags": [{"name": "a b", "value": "c"}]}, 422, "validation_error", "Tags"),
        ({"tags": [{"name": "a", "value": "x" * 257}]}, 422, "validation_error", "Tags"),
        ({"from": "a@unverified.example"}, 403, "validation_error", "not verified"),
    ],
)
async def test_a_bad_mail_is_refused_with_resends_name(change, status, name, word) -> None:
    limits = Limits(requests_per_s=1000, unverified=frozenset({"unverified.example"}))
    async with resend(limits) as bench:
        reply = await bench.post(MAIL | change)

    assert (reply.status, name_of(reply)) == (status, name)
    assert word in msgspec.json.decode(reply.body)["message"]
    assert bench.simulator.journal.entries == []


@pytest.mark.parametrize("body", [b"", b"{", b"\xff"])
async def test_what_is_not_json_is_refused(body: bytes) -> None:
    async with resend() as bench:
        assert name_of(await bench.post(body)) == "validation_error"


async def test_a_mail_that_is_no_object_is_refused() -> None:
    async with resend() as bench:
        assert (await bench.post([MAIL])).status == 422
        assert (await bench.post([7], "/emails/batch")).status == 422


# ------------------------------------------------------------------------------ who asks


@pytest.mark.parametrize(
    ("authorization", "name"),
    [
        ("", "missing_api_key"),
        ("Basic re_1", "missing_api_key"),
        ("Bearer sk_1", "validation_error"),
    ],
)
async def test_a_bad_key_is_refused(authorization: str, name: str) -> None:
    async with resend() as bench:
        reply = await bench.post(MAIL, authorization=authorization)

    assert (reply.status, name_of(reply)) == (401, name)
    assert reply.header("ratelimit-limit")


async def test_only_the_keys_it_was_given_are_known() -> None:
    async with resend(Limits(keys=frozenset({"re_2"}))) as bench:
        assert (await bench.post(MAIL)).status == 401
        assert (await bench.post(MAIL, authorization="Bearer re_2")).status == 200


async def test_a_request_without_a_user_agent_is_refused_in_no_json() -> None:
    async with resend() as bench:
        reader, writer = await asyncio.open_connection(HOST, int(bench.url.rpartition(":")[2]))
        writer.write(
            b"POST /emails HTTP/1.1\r\nhost: a\r\nauthorization: Bearer re_1\r\n"
            b"connection: close\r\ncontent-length: 2\r\n\r\n{}"
        )
        answer = await asyncio.wait_for(reader.read(), BOUND_S)
        writer.close()
        await writer.wait_closed()

    assert answer.startswith(b"HTTP/1.1 403 ")
    assert answer.endswith(b"error code: 1010")


@pytest.mark.parametrize(
    ("method", "path", "status", "name"),
    [("GET", "/emails", 405, "method_not_allowed"), ("POST", "/mails", 404, "not_found")],
)
async def test_other_paths_and_methods_are_refused(method, path, status, name) -> None:
    async with resend() as bench:
        reply = await bench.http.request(
            method, bench.url + path, headers={"authorization": "Bearer re_1"}, timeout_s=BOUND_S
        )

    assert (reply.status, name_of(reply)) == (status, name)


# ------------------------------------------------------------------------------ how much


async def test_more_requests_than_the_limit_of_a_second_wait_for_the_next() -> None:
    async with resend(Limits(requests_per_s=2)) as bench:
        replies = [await bench.post(MAIL) for _ in range(3)]
        other = await bench.post(MAIL, authorization="Bearer re_2")
        bench.hours.now += 1
        later = await bench.post(MAIL)

    assert [reply.status for reply in replies] == [200, 200, 429]
    assert name_of(replies[2]) == "rate_limit_exceeded"
    assert replies[2].header("retry-after") == "1"
    assert [reply.header("ratelimit-remaining") for reply in replies] == ["1", "0", "0"]
    assert {reply.header("ratelimit-limit") for reply in replies} == {"2"}
    assert replies[0].header("ratelimit-policy") == "2;w=1"
    assert replies[0].header("retry-after") is None
    assert (other.status, later.status) == (200, 200)
    assert len(bench.simulator.journal.entries) == 4


@pytest.mark.parametrize("quota", ["daily", "monthly"])
async def test_a_quota_counts_recipients_and_is_no_burst_limit(quota: str) -> None:
    async with resend(Limits(requests_per_s=1000, **{f"{quota}_quota": 3})) as bench:
        first = await bench.post(MAIL | {"cc": ["a@example.com"]})
        over = await bench.post(MAIL | {"cc": ["a@example.com"]})
        last = await bench.post(MAIL)

    assert (first.status, over.status, last.status) == (200, 429, 200)
    assert name_of(over) == f"{quota}_quota_exceeded"
    assert over.header("retry-after") is None
    assert last.header("x-resend-monthly-quota") == "3"
    assert (last.header("x-resend-daily-quota") is not None) == (quota == "daily")


# ------------------------------------------------------------------------------ once only


async def test_the_same_key_and_body_get_the_stored_answer_and_send_nothing() -> None:
    async with resend() as bench:
        first, again = [await bench.post(MAIL, key="k") for _ in range(2)]
        batch = [await bench.post([MAIL], "/emails/batch", key="b") for _ in range(2)]

    assert again.body == first.body
    assert batch[0].body == batch[1].body
    assert len(bench.simulator.journal.entries) == 2


async def test_the_same_key_and_another_body_conflict() -> None:
    async with resend() as bench:
        await bench.post(MAIL, key="k")
        other = await bench.post(MAIL | {"subject": "Ho"}, key="k")
        elsewhere = await bench.post([MAIL], "/emails/batch", key="k")

    assert {(r.status, name_of(r)) for r in (other, elsewhere)} == {
        (409, "invalid_idempotent_request")
    }
    assert len(bench.simulator.journal.entries) == 1


async def test_a_key_belongs_to_its_account_and_is_forgotten_after_a_day() -> None:
    async with resend() as bench:
        await bench.post(MAIL, key="k")
        await bench.post(MAIL, key="k", authorization="Bearer re_2")
        bench.hours.now += 24 * 3600
        await bench.post(MAIL, key="k")

    assert len(bench.simulator.journal.entries) == 3


async def test_a_refused_request_does_not_use_up_its_key() -> None:
    async with resend() as bench:
        assert (await bench.post(MAIL | {"to": []}, key="k")).status == 422
        assert (await bench.post(MAIL, key="k")).status == 200


async def test_a_key_whose_first_request_still_runs_conflicts_until_its_client_is_gone() -> None:
    async with resend() as bench:
        accepted = asyncio.Event()
        append = bench.simulator.journal.append
        bench.simulator.journal.append = lambda entries: (append(entries), accepted.set())
        bench.simulator.faults.add(Fault("hang", accept=True))
        first = asyncio.create_task(bench.post(MAIL, key="k"))
        await asyncio.wait_for(accepted.wait(), BOUND_S)
        running = await bench.post(MAIL, key="k")
        free = await bench.post(MAIL, key="another")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        async with asyncio.timeout(BOUND_S):
            while (after := await bench.post(MAIL, key="k")).status == 409:
                pass

    assert (running.status, name_of(running)) == (409, "concurrent_idempotent_requests")
    assert free.status == 200
    assert after.status == 200
    assert len(bench.simulator.journal.entries) == 2


@pytest.mark.parametrize("key", ["", "k" * 257])
async def test_a_key_that_is_too_short_or_too_long_is_refused(key: str) -> None:
    async with resend() as bench:
        reply = await bench.post(MAIL, key=key)

    assert (reply.status, name_of(reply)) == (400, "invalid_idempotency_key")


# ------------------------------------------------------------------------------ a batch


async def test_a_batch_is_answered_in_order_and_journalled_mail_by_mail() -> None:
    several = [MAIL | {"tags": [{"name": "n", "value": str(n)}]} for n in range(100)]
    async with resend() as bench:
        reply = await bench.post(several, "/emails/batch", key="b")
        entries = bench.simulator.journal.entries

    ids = [sent["id"] for sent in msgspec.json.decode(reply.body)["data"]]
    assert [entry.id for entry in entries] == ids
    assert [entry.tags["n"] for entry in entries] == [str(n) for n in range(100)]
    assert {(entry.key, entry.batch) for entry in entries} == {("b", True)}
    assert entries[7].sha256 == hashlib.sha256(msgspec.json.encode(several[7])).hexdigest()


async def test_a_strict_batch_is_all_or_nothing() -> None:
    async with resend() as bench:
        reply = await bench.post([MAIL, MAIL | {"to": ["nobody"]}], "/emails/batch")

    assert (reply.status, name_of(reply)) == (422, "validation_error")
    assert bench.simulator.journal.entries == []


async def test_a_permissive_batch_sends_what_is_valid_and_names_the_rest_by_index() -> None:
    bad = MAIL | {"to": ["nobody"]}
    permissive = {"x-batch-validation": "permissive"}
    async with resend() as bench:
        reply = await bench.post([bad, MAIL, bad, MAIL], "/emails/batch", **permissive)
        whole = await bench.post([MAIL], "/emails/batch", **permissive)

    said = msgspec.json.decode(reply.body)
    assert reply.status == 200
    assert len(said["data"]) == 2
    assert [error["index"] for error in said["errors"]] == [0, 2]
    assert "`to`" in said["errors"][0]["message"]
    assert msgspec.json.decode(whole.body)["errors"] == []
    assert len(bench.simulator.journal.entries) == 3


async def test_a_sender_that_is_not_verified_refuses_a_permissive_batch_as_a_whole() -> None:
    limits = Limits(requests_per_s=1000, unverified=frozenset({"unverified.example"}))
    strange = MAIL | {"from": "a@unverified.example"}
    async with resend(limits) as bench:
        reply = await bench.post(
            [MAIL, strange], "/emails/batch", **{"x-batch-validation": "permissive"}
        )

    assert (reply.status, name_of(reply)) == (403, "validation_error")
    assert bench.simulator.journal.entries == []


@pytest.mark.parametrize("count", [0, 101])
async def test_a_batch_holds_one_to_a_hundred(count: int) -> None:
    async with resend() as bench:
        assert (await bench.post([MAIL] * count, "/emails/batch")).status == 422


async def test_attachments_are_taken_alone_and_not_in_a_batch() -> None:
    heavy = MAIL | {"attachments": [{"filename": "a.txt", "content": "YQ=="}]}
    async with resend() as bench:
        assert (await bench.post(heavy)).status == 200
        assert (await bench.post([heavy], "/emails/batch")).status == 422
