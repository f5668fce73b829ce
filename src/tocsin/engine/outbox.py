"""Outbox: the jobs of a run that are to be sent, composed one provider call at a time."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import assert_never
from uuid import UUID

from tocsin.domain.errors import Invalid
from tocsin.domain.message import EmailMessage, InAppMessage, Message, TextMessage
from tocsin.domain.outcome import ContentRejected, Outcome
from tocsin.engine.assembly import Assembler
from tocsin.engine.run import Run

#: Characters and attached bytes of one call's messages: a batch of large ones becomes several calls.
CALL_SIZE_MAX = 8_000_000


class Outbox:
    """Only what is about to leave is in memory, however large a campaign's message is."""

    def __init__(self, run: Run, jobs: Iterable[UUID], assembler: Assembler) -> None:
        self._run = run
        self._waiting = deque(jobs)
        self._assembler = assembler

    def __len__(self) -> int:
        return len(self._waiting)

    def rest(self) -> list[UUID]:
        """The jobs that were not taken; they are taken by this."""
        left = list(self._waiting)
        self._waiting.clear()
        return left

    def take(self, now: datetime) -> tuple[list[Message], list[tuple[UUID, Outcome]]]:
        """The messages of the next call, and the jobs met on the way that cannot be composed.

        What has attachments goes alone: providers do not take them in batches.
        """
        messages: list[Message] = []
        refused: list[tuple[UUID, Outcome]] = []
        size = 0
        while self._waiting and len(messages) < self._run.spec.batch_max and size < CALL_SIZE_MAX:
            assembled = self._run.assembled[self._waiting[0]]
            alone = bool(assembled.content.attachments)
            if alone and messages:
                break
            job_id = self._waiting.popleft()
            try:
                message = self._assembler.message(assembled, self._run.spec.channel, now)
            except Invalid as error:
                refused.append((job_id, ContentRejected(error.code, error.detail)))
                continue
            messages.append(message)
            size += _size(message)
            if alone:
                break
        return messages, refused


def _size(message: Message) -> int:
    match message:
        case EmailMessage():
            size = len(message.text or "") + len(message.html or "")
            return size + sum(len(a.content) for a in message.attachments)
        case InAppMessage() | TextMessage():
            return len(message.body)
        case _:
            assert_never(message)
