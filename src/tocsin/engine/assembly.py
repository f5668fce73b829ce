"""Assembly: everything a claimed batch needs, one query per kind; each job becomes a message or an outcome."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from msgspec import Struct

from tocsin.content.compose import Envelope, Person, compose, variables
from tocsin.content.script import Script, Words, script_of
from tocsin.domain.channel import Channel
from tocsin.domain.content import Content
from tocsin.domain.errors import Invalid
from tocsin.domain.ids import time_of
from tocsin.domain.message import EmailMessage, Mailbox, Message
from tocsin.domain.outcome import (
    Accepted,
    Cancelled,
    ContentRejected,
    Expired,
    Outcome,
    Suppressed,
)
from tocsin.domain.preferences import Preference, allows
from tocsin.store import contents, erasures, prefetch, projects, suppressions, templates
from tocsin.store.pool import Database
from tocsin.store.prefetch import JobDetail
from tocsin.store.projects import Sender
from tocsin.store.templates import Wording

#: Decoded contents kept per worker: a campaign's is fetched once. Larger ones are never kept.
CONTENTS_KEPT_MAX = 256
CONTENT_KEPT_BYTES_MAX = 64 * 1024

UnsubscribeUrl = Callable[[int, str, datetime], str | None]

_decode_content = msgspec.json.Decoder(Content).decode
_decode_preferences = msgspec.json.Decoder(list[Preference]).decode


class Assembled(Struct, frozen=True):
    """One job of the batch: its row, what it says and for whom, or the outcome if nothing is sent."""

    job: JobDetail
    content: Content
    script: Script | None = None
    sender: Mailbox | None = None
    cc: tuple[str, ...] = ()
    refusal: Outcome | None = None


class Defaults(Struct, frozen=True):
    """The sender of projects that have none, and how an unsubscribe link is made."""

    sender: Mailbox
    unsubscribe_url: UnsubscribeUrl


class Assembler:
    """Reads and composes; holds no connection while anything is sent (law 9)."""

    def __init__(self, db: Database, defaults: Defaults) -> None:
        self._db = db.queue
        self._defaults = defaults
        self._kept: OrderedDict[UUID, Content] = OrderedDict()

    async def assemble(
        self, job_ids: Sequence[UUID], *, channel: Channel, now: datetime
    ) -> dict[UUID, Assembled]:
        """By job id; a job whose row is gone (its project was erased) is left out.

        If consent cannot be read nothing is returned: the error is the caller's, and nothing is sent (law 8).
        """
        jobs = await prefetch.prefetch(self._db, job_ids, channel=channel)
        if not jobs:
            return {}
        said, senders = await asyncio.gather(
            self._contents({job.content_id for job in jobs.values()}),
            projects.senders(self._db, list({job.project for job in jobs.values()})),
        )
        wanted = {
            (job.project, template, channel)
            for job in jobs.values()
            if (content := said.get(job.content_id)) and (template := content.template)
        }
        wordings = await templates.wordings(self._db, list(wanted)) if wanted else {}
        batch = _Batch(
            channel=channel,
            now=now,
            contents=said,
            senders=senders,
            wordings=wordings,
            gone=await self._gone(jobs.values()),
            silenced=await self._silenced(jobs.values(), said),
            scripts={},
        )
        return {job.id: self._one(job, batch) for job in jobs.values()}

    async def _gone(self, jobs: Iterable[JobDetail]) -> dict[tuple[int, str], datetime]:
        """People who may have been deleted after a job was made for them: few, so they are asked for apart."""
        people = {
            (job.project, job.subscriber_id)
            for job in jobs
            if job.subscriber_id is not None
            and (job.known_since is None or job.known_since > time_of(job.id))
        }
        return await erasures.erased(self._db, list(people)) if people else {}

    async def _silenced(
        self, jobs: Iterable[JobDetail], said: dict[UUID, Content]
    ) -> dict[tuple[int, str], str]:
        """Suppressions of addresses in copy."""
        copies = {
            (job.project, address.lower())
            for job in jobs
            if (content := said.get(job.content_id))
            for address in content.cc
        }
        return await suppressions.scopes(self._db, list(copies)) if copies else {}

    async def _contents(self, ids: set[UUID]) -> dict[UUID, Content]:
        found: dict[UUID, Content] = {}
        missing: list[UUID] = []
        for content_id in ids:
            content = self._kept.get(content_id)
            if content is None:
                missing.append(content_id)
            else:
                self._kept.move_to_end(content_id)
                found[content_id] = content
        if missing:
            for content_id, body in (await contents.contents(self._db, missing)).items():
                content = _decode_content(body)
                found[content_id] = content
                if len(body) <= CONTENT_KEPT_BYTES_MAX:
                    self._kept[content_id] = content
            while len(self._kept) > CONTENTS_KEPT_MAX:
                self._kept.popitem(last=False)
        return found

    def _one(self, job: JobDetail, batch: "_Batch") -> Assembled:
        content = batch.contents.get(job.content_id)
        if content is None:
            gone = ContentRejected("content_gone", "what the message says was dropped by retention")
            return Assembled(job, Content(), refusal=gone)
        sender = batch.senders.get(job.project)
        refusal = _refusal(job, content, sender, batch)
        if refusal is not None:
            return Assembled(job, content, refusal=refusal)
        script = _script(job, content, batch)
        if not isinstance(script, Script):
            return Assembled(job, content, refusal=script)
        copies = content.cc and tuple(
            address for address in content.cc if not _silent(job, address, content, batch)
        )
        return Assembled(job, content, script, self._mailbox(sender), copies)

    def _mailbox(self, sender: Sender | None) -> Mailbox:
        if sender is not None and sender.from_email:
            return Mailbox(sender.from_email, sender.from_name)
        return self._defaults.sender

    def message(self, assembled: Assembled, channel: Channel, now: datetime) -> Message:
        """The job's message. Raises Invalid when it cannot be composed."""
        job, script, sender = assembled.job, assembled.script, assembled.sender
        assert script is not None
        assert sender is not None
        unsubscribe = None
        if script.content.marketing and channel == "email":
            unsubscribe = self._defaults.unsubscribe_url(job.project, job.recipient, now)
        recipient = job.recipient
        if channel == "in_app" and job.subscriber_id is not None:
            recipient = job.subscriber_id
        envelope = Envelope(job.id, channel, recipient, sender, now, unsubscribe)
        values = variables(_person(job)) if script.personal else {}
        message = compose(script, envelope, values)
        if isinstance(message, EmailMessage) and message.cc != assembled.cc:
            message = msgspec.structs.replace(message, cc=assembled.cc)
        return message


class _Batch(Struct, frozen=True):
    """What the jobs of one lease need, read for all of them at once. scripts: made on first use."""

    channel: Channel
    now: datetime
    contents: dict[UUID, Content]
    senders: dict[int, Sender]
    wordings: dict[tuple[int, str, str], Wording]
    gone: dict[tuple[int, str], datetime]
    silenced: dict[tuple[int, str], str]
    scripts: dict[UUID, Script | ContentRejected]


def _silent(job: JobDetail, address: str, content: Content, batch: _Batch) -> bool:
    scope = batch.silenced.get((job.project, address.lower()))
    return scope == "all" or (scope == "marketing" and content.marketing)


def _script(job: JobDetail, content: Content, batch: _Batch) -> Script | ContentRejected:
    """The script of the job's content, or why it has none; made once per batch."""
    script = batch.scripts.get(job.content_id)
    if script is not None:
        return script
    words = Words(content.subject, content.body, content.body_html)
    if content.template is not None:
        wording = batch.wordings.get((job.project, content.template, batch.channel))
        if wording is None:
            missing = "the template has no variant for this channel, or was deleted"
            return ContentRejected("template_missing", missing)
        words = Words(
            wording.subject if content.subject is None else content.subject,
            wording.body if content.body is None else content.body,
            wording.body_html if content.body_html is None else content.body_html,
        )
    if job.vars:
        own = msgspec.json.decode(job.vars)
        content = msgspec.structs.replace(content, vars={**(content.vars or {}), **own})
        return _compiled(content, words)
    return batch.scripts.setdefault(job.content_id, _compiled(content, words))


def _compiled(content: Content, words: Words) -> Script | ContentRejected:
    try:
        return script_of(content, words)
    except Invalid as error:
        return ContentRejected(error.code, error.detail)


def _person(job: JobDetail) -> Person:
    if job.known_since is None:
        return Person()
    return Person(
        subscriber_id=job.subscriber_id,
        email=job.email,
        phone=job.phone,
        first_name=job.first_name,
        last_name=job.last_name,
        locale=job.locale,
        timezone=job.timezone,
        data=job.data,
    )


def _refusal(
    job: JobDetail, content: Content, sender: Sender | None, batch: _Batch
) -> Outcome | None:
    """Why nothing is sent, None when it may be."""
    if job.cancelled == "already_sent":
        return Accepted()
    if job.cancelled is not None:
        return Cancelled(job.cancelled)
    if sender is None or sender.deleted:
        return Cancelled("project_deleted")
    erased_at = batch.gone.get((job.project, job.subscriber_id or ""))
    if erased_at is not None and erased_at >= time_of(job.id):
        return Cancelled("subscriber_deleted")
    if job.expires_at is not None and job.expires_at <= batch.now:
        return Expired()
    if job.suppressed == "all" or (job.suppressed == "marketing" and content.marketing):
        return Suppressed("suppressed")
    if job.preferences is not None and not content.transactional:
        choices = _decode_preferences(job.preferences)
        if not allows(choices, batch.channel, content.topic or "", content.template or ""):
            return Suppressed("opted_out")
    return None
