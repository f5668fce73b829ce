"""What the contract suite needs of a connector: a bench where it stands against its provider.

To put a connector through the suite, write a `Subject` whose `open` gives a bench for every `Trouble` that its
provider can make, and add it to `subjects.SUBJECTS`.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from uuid import UUID

from tocsin.connectors.base import Call, Connector
from tocsin.domain.ids import uuid7s
from tocsin.domain.message import EmailMessage, InAppMessage, Mailbox, Message, TextMessage

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
THROTTLE_S = 7.0

#: Stands in every address, name, subject and body, so that a leak of any of them is found by one word.
PRIVATE = "xylophone"
#: Stands in every key and password.
SECRET = "zwieback"


class Trouble(Enum):
    """What the provider does to the next call."""

    NONE = "nothing"
    KEY_REFUSED = "it does not know our key"
    THROTTLED = "it asks for THROTTLE_S seconds of rest"
    FAILING = "it answers that it failed"
    SILENT = "it takes the call and never answers"
    LOST = "it takes the call, does it, and the connection breaks"
    REFUSED = "nothing listens there"
    MALFORMED = "it answers success with something unreadable"
    MALFORMED_FAILURE = "it answers failure with something unreadable"


@dataclass
class Bench:
    """accepted: the jobs the provider has taken, in its order, each as often as it took it;
    job_of: the job behind a provider message id, where the provider lets us know."""

    connector: Connector
    accepted: Callable[[], list[UUID]] | None = None
    job_of: Callable[[str], UUID] | None = None


@dataclass(frozen=True)
class Subject:
    """A connector under test. troubles: those its provider can make; dedupes: as its spec says."""

    name: str
    open: Callable[[Trouble], AbstractAsyncContextManager[Bench]]
    troubles: frozenset[Trouble] = frozenset()
    dedupes: bool = False


def message_for(channel: str, job_id: UUID, number: int) -> Message:
    """A message of the channel, all of it private."""
    words = f"{PRIVATE} {number}"
    match channel:
        case "email":
            return EmailMessage(
                job_id,
                Mailbox(f"{PRIVATE}-sender@example.com", f"{PRIVATE} & Co."),
                Mailbox(f"{PRIVATE}-{number}@example.com", words),
                words,
                f"{job_id}@example.com",
                NOW,
                text=words,
                html=f"<p>{words}</p>",
                headers=(("X-Note", words),),
                tags=(("kind", "contract"),),
            )
        case "in_app":
            return InAppMessage(job_id, f"{PRIVATE}-{number}", words, subject=words)
        case _:
            return TextMessage(job_id, channel, f"{PRIVATE}-{number}", words)


def call_of(connector: Connector, count: int, *, key: str | None = None) -> Call:
    """A call of `count` messages as the engine makes it: under the job's id when it is one."""
    job_ids = tuple(uuid7s(NOW, count))
    messages = tuple(
        message_for(connector.spec.channel, job_id, number) for number, job_id in enumerate(job_ids)
    )
    frozen = connector.freeze(messages) if connector.spec.dedupes else None
    return Call(
        key or str(job_ids[0] if count == 1 else uuid7s(NOW, 1)[0]), job_ids, messages, frozen
    )
