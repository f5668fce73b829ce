"""POST /v1/send, /v1/schedule and /v1/batch as the framework serves them; hot.py answers first."""

from typing import Annotated, Any

from litestar import Response, Router, post
from litestar.params import HeaderParameter, JSONBody

from tocsin.domain.request import BatchRequest, SendRequest
from tocsin.engine.order import Receipt
from tocsin.faces.http.given import PROJECT_KEY, Given, Project
from tocsin.faces.http.hot import idempotency_key
from tocsin.faces.http.openapi import answers
from tocsin.service import batch, send
from tocsin.service.batch import BatchReceipt
from tocsin.service.reply import Reply

Key = Annotated[str | None, HeaderParameter(name="Idempotency-Key")]


def _response(reply: Reply) -> Response[Any]:
    headers = {"idempotent-replayed": "true"} if reply.replayed else None
    return Response(
        reply.body, status_code=reply.status, media_type="application/json", headers=headers
    )


@post(["/send", "/schedule"], status_code=200, responses=answers(Receipt))
async def send_one(
    app: Given, who: Project, data: JSONBody[SendRequest], header_key: Key = None
) -> Response[Any]:
    """Send to one person, on one channel or several; stored when this answers."""
    key = idempotency_key(header_key, data.idempotency_key)
    return _response(await send.send(app, who, data, key))


@post("/batch", status_code=200, responses=answers(BatchReceipt))
async def send_many(
    app: Given, who: Project, data: JSONBody[BatchRequest], header_key: Key = None
) -> Response[Any]:
    """Send the same message to many subscribers; all of it is stored when this answers."""
    key = idempotency_key(header_key, data.idempotency_key)
    return _response(await batch.batch(app, who, data, key))


router = Router("/v1", route_handlers=[send_one, send_many], security=PROJECT_KEY, tags=["Send"])
