"""Send and batch: the hot route and the framework's answer the same, keys included."""

from typing import Any
from uuid import UUID

import pytest

from tests.faces.http.conftest import Api
from tests.support.asgi import Answered, Client
from tocsin.faces.http.app import framework
from tocsin.faces.http.front import Front
from tocsin.faces.http.identity import Gate

SEND: dict[str, Any] = {"channel": "email", "to": "ada@example.com", "subject": "Hi", "body": "Hi"}
UUID_LENGTH = 36


@pytest.fixture
async def slow(api: Api) -> Client:
    """The same API with no hot routes."""
    gate = Gate(api.app)
    inner: Any = framework(api.app, gate)
    front = Front(inner, {}, gate=gate, streams=api.front.streams, cors=api.front._cors)
    return Client(front, {"x-api-key": api.key})


def shape(found: Answered) -> Any:
    """An answer with its ids and times taken out."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            skipped = ("request_id", "scheduled_at")
            return {name: plain(item) for name, item in value.items() if name not in skipped}
        if isinstance(value, list):
            return [plain(item) for item in value]
        return "uuid" if isinstance(value, str) and len(value) == UUID_LENGTH else value

    headers = {
        k: v for k, v in found.headers.items() if k not in ("x-request-id", "content-length")
    }
    return found.status, headers, plain(found.json)


@pytest.mark.parametrize("path", ["/v1/send", "/v1/schedule", "/v1/batch"])
@pytest.mark.parametrize(
    "body",
    [
        SEND, {}, SEND | {"to": 5}, b"", b"{", b'{"to":"\\u0000"}', SEND | {"priority": "?"},
        {"subscriber_id": "nobody", "body": "x"}, {"subscribers": ["nobody"], "body": "x"},
        SEND | {"channels": ["sms"], "to": "+33612345678"}, {"subscribers": [1], "body": "x"},
        {"subscribers": ["a"], "body": "x", "channels": ["sms"]},
    ],
)  # fmt: skip
async def test_the_hot_route_and_the_framework_answer_the_same(
    api: Api, slow: Client, path: str, body: Any
) -> None:
    assert shape(await api.acme.post(path, body)) == shape(await slow.post(path, body))


async def test_a_send_is_a_job_that_can_be_read_cancelled_and_tried_again(api: Api) -> None:
    sent = await api.acme.post("/v1/send", SEND)
    (job,) = sent.json["job_ids"]
    read = await api.acme.get(f"/v1/jobs/{job}")

    assert sent.status == 200
    assert sent.json["success"] is True
    assert sent.json["channels"] == ["email"]
    assert read.json["id"] == job
    assert read.json["status"] == "pending"
    assert read.json["email_envelope"]["to"] == ["ada@example.com"]
    assert (await api.acme.post(f"/v1/jobs/{job}/retry")).status == 409
    assert (await api.acme.delete(f"/v1/jobs/{job}")).json == {"success": True, "id": job}
    assert (await api.acme.get(f"/v1/jobs/{job}")).json["status"] == "cancelled"


@pytest.mark.parametrize("job", ["nothing", "00000000-0000-7000-8000-000000000000", "1", "%20"])
async def test_a_job_that_is_not_there_is_a_404(api: Api, job: str) -> None:
    found = [
        await api.acme.get(f"/v1/jobs/{job}"),
        await api.acme.delete(f"/v1/jobs/{job}"),
        await api.acme.post(f"/v1/jobs/{job}/retry"),
    ]

    assert {answer.json["code"] for answer in found} == {"job_not_found"}


async def test_a_job_of_another_project_is_not_there(api: Api) -> None:
    (job,) = (await api.acme.post("/v1/send", SEND)).json["job_ids"]
    other = await api.project("other")

    assert (await other.get(f"/v1/jobs/{job}")).status == 404
    assert (await other.delete(f"/v1/jobs/{job}")).status == 404
    assert (await api.acme.get(f"/v1/jobs/{job}")).json["status"] == "pending"


@pytest.mark.parametrize("hot", [True, False])
async def test_the_same_key_gives_the_same_answer_and_says_so(
    api: Api, slow: Client, *, hot: bool
) -> None:
    client = api.acme if hot else slow
    first = await client.post("/v1/send", SEND, idempotency_key="k1")
    second = await client.post("/v1/send", SEND | {"idempotency_key": "k1"})
    third = await client.post("/v1/send", SEND | {"idempotency_key": "k1"}, idempotency_key="k1")
    other = await client.post("/v1/send", SEND | {"body": "other"}, idempotency_key="k1")

    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert first.body == second.body == third.body
    assert other.status == 409


async def test_two_different_keys_in_one_request_are_refused(api: Api) -> None:
    found = await api.acme.post("/v1/send", SEND | {"idempotency_key": "a"}, idempotency_key="b")

    assert (found.status, found.json["code"]) == (422, "idempotency_keys_differ")


@pytest.mark.parametrize("key", ["", "x" * 513, "a\tb"])
@pytest.mark.parametrize("hot", [True, False])
async def test_a_key_that_is_none_is_refused(
    api: Api, slow: Client, key: str, *, hot: bool
) -> None:
    found = await (api.acme if hot else slow).post("/v1/send", SEND, idempotency_key=key)

    assert (found.status, found.json["field"]) == (422, "Idempotency-Key")


async def test_a_batch_counts_what_it_made(api: Api) -> None:
    for person in ("a", "b"):
        await api.acme.post("/v1/subscribers", {"id": person, "email": f"{person}@b.example"})

    found = await api.acme.post(
        "/v1/batch", {"channel": "email", "subscribers": ["a", "b", "a", "c"], "body": "x"}
    )

    assert found.status == 200
    assert found.json["jobs_created"] == 2
    assert found.json["jobs_without_address"] == 1
    assert found.json["channels"] == ["email"]


async def test_an_in_app_message_never_shows_variables_or_controls_to_the_browser(
    api: Api,
) -> None:
    await api.acme.post("/v1/subscribers", {"id": "ada"})
    sent = await api.acme.post(
        "/v1/send",
        {
            "subscriber_id": "ada", "body": "hi", "channels": ["in_app"],
            "vars": {"cc": ["x@y.example"], "attachments": [1], "reset_link": "secret"},
        },
    )  # fmt: skip
    job = await api.acme.get(f"/v1/jobs/{sent.json['job_ids'][0]}")

    assert UUID(job.json["id"])
    assert job.json["email_envelope"] is None
