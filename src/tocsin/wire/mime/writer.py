"""One EmailMessage as the bytes an SMTP server takes: the same mail, the same bytes (law 4)."""

from datetime import UTC, datetime
from uuid import UUID

from tocsin.domain.errors import Invalid
from tocsin.domain.message import Attachment, EmailMessage, Mailbox
from tocsin.wire.addresses import parse_mailbox, to_ascii_domain
from tocsin.wire.mime.headers import address_field, check_atoms, text_field
from tocsin.wire.mime.parts import BOUNDARY_MARK, attachment_part, multipart, text_part
from tocsin.wire.mime.refusals import check_headers

JOB_HEADER = "X-Tocsin-Job-Id"

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def write(mail: EmailMessage) -> bytes:
    """The whole message, CRLF lines of at most 998 octets, body always safe for a 7bit server.

    ASCII throughout, unless `needs_smtputf8(mail)`: then addresses with a non-ASCII local part stand in UTF-8.
    Text is read back with one line end at its end, added if it had none. Raises Invalid naming the field for
    what the boundary should have refused (a line break in a header, no address, a composite attachment).
    """
    head = [
        f"Date: {_date(mail.date)}\r\n",
        address_field("From", (mail.sender,), "from"),
        address_field("To", (mail.to,), "to"),
    ]
    if mail.cc:
        copies = [parse_listed(text, "cc") for text in mail.cc]
        head.append(address_field("Cc", copies, "cc"))
    if mail.reply_to:
        head.append(
            address_field("Reply-To", (parse_listed(mail.reply_to, "reply_to"),), "reply_to")
        )
    head.append(text_field("Subject", mail.subject, "subject"))
    check_atoms(mail.message_id, "message_id")
    head.append(f"Message-ID: <{mail.message_id}>\r\n{JOB_HEADER}: {mail.job_id}\r\n")
    # Again, though the boundary did: a mail can come from a row that an older version wrote.
    check_headers(mail.headers, "headers")
    head += [text_field(name, value, f"headers.{name}") for name, value in mail.headers]
    head.append("MIME-Version: 1.0\r\n")
    return "".join(head).encode() + _body(mail)


def parse_listed(text: str, field: str) -> Mailbox:
    """An entry of `cc` or `reply_to`: an address alone, or one with a name in front."""
    return parse_mailbox(text, field) if "<" in text else Mailbox(text)


def needs_smtputf8(mail: EmailMessage) -> bool:
    """Whether any address has a non-ASCII local part (RFC 6531); a non-ASCII domain has A-labels."""
    listed = (mail.sender.address, mail.to.address, *mail.cc, mail.reply_to or "")
    if all(map(str.isascii, listed)):
        return False
    mailboxes = [mail.sender, mail.to, *(parse_listed(text, "cc") for text in mail.cc)]
    if mail.reply_to:
        mailboxes.append(parse_listed(mail.reply_to, "reply_to"))
    return not all(mailbox.address.rpartition("@")[0].isascii() for mailbox in mailboxes)


def message_id(job_id: UUID, sender_domain: str) -> str:
    """The one Message-ID of a job, without angle brackets: unique, and in the domain that sends it."""
    domain = to_ascii_domain(sender_domain)
    if domain is None:
        raise Invalid(
            "invalid_domain",
            "the sender's address has no valid domain",
            remedy="Set from_email to an address in a domain that you send from.",
            field="from",
        )
    return f"{job_id}@{domain}"


def _body(mail: EmailMessage) -> bytes:
    boundary = f"{BOUNDARY_MARK}{mail.job_id.hex}"
    inline: list[bytes] = []
    attached: list[bytes] = []
    for index, attachment in enumerate(mail.attachments):
        part = attachment_part(attachment, f"attachments[{index}]")
        (inline if _is_inline(attachment, mail) else attached).append(part)
    shown: list[bytes] = []
    if mail.text is not None or mail.html is None:
        shown.append(text_part("plain", mail.text or ""))
    if mail.html is not None:
        html = text_part("html", mail.html)
        if inline:
            html = multipart("related", f"{boundary}_r", (html, *inline))
        shown.append(html)
    body = shown[0] if len(shown) == 1 else multipart("alternative", f"{boundary}_a", shown)
    return multipart("mixed", f"{boundary}_m", (body, *attached)) if attached else body


def _is_inline(attachment: Attachment, mail: EmailMessage) -> bool:
    return attachment.content_id is not None and mail.html is not None


def _date(at: datetime) -> str:
    """RFC 5322 §3.3, in UTC; not strftime, which writes the names of the process's locale."""
    at = at.astimezone(UTC)
    day = f"{_DAYS[at.weekday()]}, {at.day:02} {_MONTHS[at.month - 1]} {at.year:04}"
    return f"{day} {at.hour:02}:{at.minute:02}:{at.second:02} +0000"
