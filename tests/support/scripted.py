"""A provider account that answers what the test says, and journals every message it was given."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from uuid import UUID

import msgspec

from tocsin.connectors.base import Call, Spec
from tocsin.domain.channel import Channel
from tocsin.domain.message import Message
from tocsin.domain.outcome import Accepted, Outcome

Answer = Outcome | Callable[[Call], list[Outcome]]


class Scripted:
    """`answers` are used up one call at a time; after them every call is accepted.

    hold(): calls wait before they answer until release(); `begun` counts calls that started.
    """

    def __init__(
        self,
        *answers: Answer,
        channel: Channel = "email",
        batch_max: int = 1,
        dedupes: bool = False,
        in_flight_max: int = 10,
    ) -> None:
        self._spec = Spec(
            name="scripted",
            channel=channel,
            title="Scripted",
            docs="",
            checked="2026-11-30",
            batch_max=batch_max,
            in_flight_max=in_flight_max,
            dedupes=dedupes,
        )
        self.answers = deque(answers)
        self.calls: list[Call] = []
        self.begun = asyncio.Semaphore(0)
        self._gate = asyncio.Event()
        self._gate.set()

    @property
    def spec(self) -> Spec:
        return self._spec

    @property
    def sent(self) -> list[UUID]:
        """The job of every message in every call, in order."""
        return [job_id for call in self.calls for job_id in call.job_ids]

    def hold(self) -> None:
        self._gate.clear()

    def release(self) -> None:
        self._gate.set()

    def freeze(self, messages: Sequence[Message]) -> bytes:
        return msgspec.json.encode(messages)

    async def deliver(self, call: Call) -> list[Outcome]:
        self.calls.append(call)
        self.begun.release()
        await self._gate.wait()
        answer = self.answers.popleft() if self.answers else Accepted("ok")
        if callable(answer):
            return answer(call)
        return [answer] * len(call.job_ids)

    async def aclose(self) -> None:
        pass
