"""Scenes: one email and one inbox message, from the call to what arrived."""

import email
import time
from email.message import EmailMessage
from email.policy import default
from typing import Any, Final

from rich import box
from rich.console import Console, Group
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from tocsin.faces.cli.demo.api import Api
from tocsin.faces.cli.demo.live import listening
from tocsin.faces.cli.demo.mailbox import Mailbox
from tocsin.faces.cli.demo.missed import Missed
from tocsin.faces.cli.demo.stage import SENDER

PERSON: Final = "ada"
ADDRESS: Final = "ada@people.example"
PLAN: Final = "Pro & Söhne <3"

_SHOWN: Final = ("From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type")
_TEMPLATE: Final = {
    "id": "welcome",
    "channel": "email",
    "subject": "Welcome, {{first_name}}",
    "body": "Hello {{ first_name }},\n\nyour plan is {{plan}}.\n",
    "body_html": "<h1>Hello {{first_name}}</h1><p>Your plan is <b>{{plan}}</b>.</p>",
}
_NOTE: Final = {"subject": "Export ready", "body": "Your export has 4,212 rows.", "icon": "check"}


async def show_email(api: Api, mailbox: Mailbox, out: Console) -> None:
    """A template, a person, one send; the mail as Python's own parser reads it."""
    await api.post("/v1/templates", **_TEMPLATE)
    await api.post("/v1/subscribers", id=PERSON, email=ADDRESS, first_name="Ada")
    sent_at = time.perf_counter()
    await api.post(
        "/v1/send",
        channel="email",
        subscriber_id=PERSON,
        template="welcome",
        vars={"plan": PLAN},
    )
    await mailbox.until(1)
    took_ms = (time.perf_counter() - sent_at) * 1e3
    mail = _parsed(mailbox.mails[0].raw)
    text, html = _part(mail, "plain"), _part(mail, "html")
    _expect("sender", SENDER, str(mail["From"]))
    _expect("recipient", ADDRESS, str(mail["To"]))
    _expect("subject", "Welcome, Ada", str(mail["Subject"]))
    _expect("text", f"your plan is {PLAN}.", text)
    _expect("HTML", "<b>Pro &amp; Söhne &lt;3</b>", html)
    headers = Text("\n").join(
        Text.assemble((f"{name}: ", "bold"), " ".join(str(value).split()))
        for name, value in mail.items()
        if name in _SHOWN or name.lower().startswith(("x-tocsin", "list-"))
    )
    shown = Group(headers, Rule("text/plain", style="dim"), Text(text.strip()),
                  Rule("text/html", style="dim"), Text(html.strip()))  # fmt: skip
    title = f"accepted by the SMTP server {took_ms:.1f} ms after the call"
    out.print(Panel(shown, box=box.ROUNDED, title=title, title_align="left"))


async def show_inbox(api: Api, url: str, out: Console) -> None:
    """A connected event stream, one send; the event and the unread count as they came."""
    path = f"/v1/inbox/{PERSON}"
    ticket = (await api.post(f"{path}/stream-ticket"))["ticket"]
    async with listening(url, PERSON, ticket) as stream:
        before = (await stream.event("count_update"))["unread_count"]
        sent_at = time.perf_counter()
        await api.post("/v1/send", channel="in_app", subscriber_id=PERSON, **_NOTE)
        event = await stream.event("new_notification")
        took_ms = (time.perf_counter() - sent_at) * 1e3
        count = (await stream.event("count_update"))["unread_count"]
    stored = (await api.get(f"{path}/unread-count"))["unread_count"]
    said = event["notification"]
    _expect("inbox message", _NOTE["body"], said["body"])
    if (before, count, stored) != (0, 1, 1):
        raise Missed(f"the unread count went {before} → {count}, stored {stored}; 0 → 1 is right")
    shown = Text("\n").join(
        [
            Text.assemble(("event: ", "bold"), event["type"]),
            Text.assemble(("subject: ", "bold"), str(said["subject"])),
            Text.assemble(("body: ", "bold"), said["body"]),
            Text.assemble(("unread: ", "bold"), f"{before} → {count}, version {event['version']}"),
        ]
    )
    title = f"live in the browser {took_ms:.1f} ms after the call"
    out.print(Panel(shown, box=box.ROUNDED, title=title, title_align="left"))


def _parsed(raw: bytes | None) -> EmailMessage:
    if raw is None:
        raise Missed("the SMTP server kept no copy of the mail")
    return email.message_from_bytes(raw, policy=default)


def _part(mail: EmailMessage, kind: str) -> str:
    part: Any = mail.get_body((kind,))
    if part is None:
        raise Missed(f"the mail has no text/{kind} part")
    content: str = part.get_content()
    return content


def _expect(what: str, wanted: str, found: str) -> None:
    if wanted not in found:
        raise Missed(f"the {what} should have {wanted!r} and is {found!r}")
