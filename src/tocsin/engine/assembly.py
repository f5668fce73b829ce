"""Assembly: everything a claimed batch needs, one query per kind; each job becomes a message or an outcome."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from msgspec import Struct

from tocsin.content.compose import Envelope, Person, compose, variables
from tocsin.content.script import Script, Words, script_of
from tocsin.domain.channel import Channel
from tocsin.domain.content import Content
from tocsin.domain.errors import Invalid
from tocsin.domain.message import Mailbox, Message
from tocsin.domain.outcome import (
    Accepted,
    Cancelled,
    ContentRejected,
    Expired,
    Outcome,
    Suppressed,
)
from tocsin.domain.preferences import Preference, allows
from tocsin.store import contents, prefetch, projects, templates
from tocsin.store.pool import Database
from tocsin.store.prefetch import JobDetail
from tocsin.store.projects import Sender
from tocsin.store.templates import Wording

#: Decoded contents kept per worker: a campaign's is fetched once. Larger ones are never kept.
CONTENTS_KEPT_MAX = 256
CONTENT_KEPT_BYTES_MAX = 64 * 1024

UnsubscribeUrl = Callable[[int, Channel, str, datetime], str | None]

_decode_content = msgspec.json.Decoder(Content).decode
_decode_preferences = msgspec.json.Decoder(list[Preference]).decode


class Assembled(Struct, frozen=True):
    """One job of the batch: its row, what it says and for whom, or the outcome if nothing is sent."""

    job: JobDetail
    content: Content
    script: Script | None = None
    sender: Mailbox | None = None
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
        scripts: dict[UUID, Script | ContentRejected] = {}
        return {
            job.id: self._one(
                job, said.get(job.content_id), senders, wordings, scripts, channel, now
            )
            for job in jobs.values()
        }

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

    def _one(
        self,
        job: JobDetail,
        content: Content | None,
        senders: dict[int, Sender],
        wordings: dict[tuple[int, str, str], Wording],
        scripts: dict[UUID, Script | ContentRejected],
        channel: Channel,
        now: datetime,
    ) -> Assembled:
        if content is None:
            gone = ContentRejected("content_gone", "what the message says was dropped by retention")
            return Assembled(job, Content(), refusal=gone)
        sender = senders.get(job.project)
        refusal = _refusal(job, content, sender, channel, now)
        if refusal is not None:
            return Assembled(job, content, refusal=refusal)
        script = _script(job, content, channel, wordings, scripts)
        if not isinstance(script, Script):
            return Assembled(job, content, refusal=script)
        return Assembled(job, content, script, self._mailbox(sender))

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
            unsubscribe = self._defaults.unsubscribe_url(job.project, channel, job.recipient, now)
        recipient = job.recipient
        if channel == "in_app" and job.subscriber_id is not None:
            recipient = job.subscriber_id
        envelope = Envelope(job.id, channel, recipient, sender, now, unsubscribe)
        values = variables(_person(job)) if script.personal else {}
        return compose(script, envelope, values)


def _script(
    job: JobDetail,
    content: Content,
    channel: Channel,
    wordings: dict[tuple[int, str, str], Wording],
    scripts: dict[UUID, Script | ContentRejected],
) -> Script | ContentRejected:
    """The script of the job's content, or why it has none; made once per batch."""
    script = scripts.get(job.content_id)
    if script is not None:
        return script
    words = Words(content.subject, content.body, content.body_html)
    if content.template is not None:
        wording = wordings.get((job.project, content.template, channel))
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
    return scripts.setdefault(job.content_id, _compiled(content, words))


def _compiled(content: Content, words: Words) -> Script | ContentRejected:
    try:
        return script_of(content, words)
    except Invalid as error:
        return ContentRejected(error.code, error.detail)


def _person(job: JobDetail) -> Person:
    if not job.known:
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
    job: JobDetail, content: Content, sender: Sender | None, channel: Channel, now: datetime
) -> Outcome | None:
    """Why nothing is sent, None when it may be."""
    if job.cancelled == "already_sent":
        return Accepted()
    if job.cancelled is not None:
        return Cancelled(job.cancelled)
    if sender is None or sender.deleted:
        return Cancelled("project_deleted")
    if job.expires_at is not None and job.expires_at <= now:
        return Expired()
    if job.suppressed == "all" or (job.suppressed == "marketing" and content.marketing):
        return Suppressed("suppressed")
    if job.preferences is not None and not content.transactional:
        choices = _decode_preferences(job.preferences)
        if not allows(choices, channel, content.topic or "", content.template or ""):
            return Suppressed("opted_out")
    return None
