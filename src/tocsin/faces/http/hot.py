"""Hot routes: /v1/send and /v1/batch without the framework around them, the same in every answer."""

from typing import Final

import msgspec

from tocsin.domain.errors import Invalid
from tocsin.domain.request import BatchRequest, SendRequest
from tocsin.faces.http.body import check_json, decode, read_body
from tocsin.faces.http.exchange import JSON, Answer, Request, Route
from tocsin.faces.http.identity import Gate
from tocsin.service import batch, send
from tocsin.service.app import App
from tocsin.service.reply import Reply

KEY_MAX: Final = 512
REPLAYED: Final = ("idempotent-replayed", "true")

_send_decoder = msgspec.json.Decoder(SendRequest)
_batch_decoder = msgspec.json.Decoder(BatchRequest)


def idempotency_key(header: str | None, member: str | None) -> str | None:
    """The one key of a request that may name it twice."""
    if header is None:
        return member
    if not 0 < len(header) <= KEY_MAX or not header.isprintable():
        raise Invalid(
            "invalid_idempotency_key",
            f"Idempotency-Key is empty, longer than {KEY_MAX} characters or not printable",
            remedy="send a UUID",
            field="Idempotency-Key",
        )
    if member is not None and member != header:
        raise Invalid(
            "idempotency_keys_differ",
            "idempotency_key and the header Idempotency-Key differ",
            remedy="send only one of them",
            field="idempotency_key",
        )
    return header


def replied(reply: Reply) -> Answer:
    """A reply with its headers."""
    return Answer(reply.status, reply.body, (JSON, REPLAYED) if reply.replayed else (JSON,))


def routes(app: App, gate: Gate) -> dict[tuple[str, str], Route]:
    """The raw handler of each hot (method, path)."""

    async def send_one(request: Request) -> Answer:
        who = await gate.project(request.headers)
        body = await read_body(request)
        check_json(request, body)
        data = decode(_send_decoder, body)
        key = idempotency_key(request.header(b"idempotency-key"), data.idempotency_key)
        return replied(await send.send(app, who, data, key))

    async def send_many(request: Request) -> Answer:
        who = await gate.project(request.headers)
        body = await read_body(request)
        check_json(request, body)
        data = decode(_batch_decoder, body)
        key = idempotency_key(request.header(b"idempotency-key"), data.idempotency_key)
        return replied(await batch.batch(app, who, data, key))

    return {
        ("POST", "/v1/send"): send_one,
        ("POST", "/v1/schedule"): send_one,
        ("POST", "/v1/batch"): send_many,
    }
