"""Log: builds what a provider would be sent, throws it away and says yes. For development and benchmarks."""

from collections.abc import Sequence

import msgspec
import structlog

from tocsin.connectors.base import Call, Spec
from tocsin.connectors.email.resend.body import body_of
from tocsin.domain.channel import Channel
from tocsin.domain.message import EmailMessage, Message
from tocsin.domain.outcome import Accepted, Outcome

BATCH_MAX = 100
IN_FLIGHT_MAX = 50
#: Ids named in the line of one call; the others are counted.
NAMED_MAX = 3

_log = structlog.get_logger(__name__)
_encode = msgspec.json.Encoder().encode


class Log:
    """Stands in for a provider of any channel. batch_max: messages per call, as the real one would take."""

    def __init__(self, channel: Channel, *, batch_max: int = BATCH_MAX) -> None:
        self._spec = Spec(
            name="log",
            channel=channel,
            title="Log: nothing is sent",
            docs="",
            checked="2026-11-30",
            batch_max=batch_max,
            in_flight_max=IN_FLIGHT_MAX,
        )

    @property
    def spec(self) -> Spec:
        return self._spec

    def freeze(self, messages: Sequence[Message]) -> bytes:
        """The JSON a provider would be sent: email in Resend's form, the rest as it is."""
        if messages and isinstance(messages[0], EmailMessage):
            return body_of(messages)
        return _encode(messages)

    async def deliver(self, call: Call) -> list[Outcome]:
        body = call.frozen if call.frozen is not None else self.freeze(call.messages)
        _log.info(
            "logged_instead_of_sent",
            channel=self._spec.channel,
            messages=len(call.job_ids),
            jobs=[str(job_id) for job_id in call.job_ids[:NAMED_MAX]],
            bytes=len(body),
        )
        # The last digits: ids of one moment differ only there.
        return [Accepted("log_" + job_id.hex[-12:]) for job_id in call.job_ids]

    async def aclose(self) -> None:
        pass
