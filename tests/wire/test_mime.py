import email
import email.message
import re
from datetime import UTC, datetime, timedelta, timezone
from email import policy
from email.header import decode_header, make_header
from email.headerregistry import Address
from email.utils import getaddresses
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tocsin.domain.message import Attachment, EmailMessage, Mailbox
from tocsin.wire.mime import needs_smtputf8, write

JOB = UUID("019b0000-0000-7000-8000-000000000001")
AT = datetime(2026, 11, 30, 8, 5, 9, tzinfo=UTC)
MAIL = EmailMessage(
    job_id=JOB,
    sender=Mailbox("news@acme.dev", "Acme"),
    to=Mailbox("jane@example.com", "Jane Doe"),
    subject="Your order",
    message_id=f"{JOB}@acme.dev",
    date=AT,
    text="Hello\n",
)

line = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
    | st.sampled_from(' "\\=?_,<>@()éß漢🔔'),
    max_size=150,
)
body = st.text(
    st.characters(exclude_categories=("Cs",)) | st.sampled_from("\r\n .=-\t"), max_size=400
)
bodies = st.one_of(
    body,
    st.builds(
        str.__mul__, st.sampled_from(["a", "é", "a b ", "漢", ".\r\n"]), st.integers(900, 2100)
    ),
)
local = st.text("abcXYZ09!#$%&'*+/=?^_`{|}~-", min_size=1, max_size=40)
international = st.text("abcéß漢ñ", min_size=1, max_size=15)
domain = st.sampled_from(
    ["example.com", "bücher.example", "例え.jp", "a" * 60 + "." + "b" * 60 + ".org"]
)
addresses = st.builds(lambda one, two: f"{one}@{two}", local | international, domain)
# A run of blanks in a phrase is one blank to every reader, whatever kind they are.
names_shown = line.map(lambda text: " ".join(text.split()))
mailboxes = st.builds(Mailbox, addresses, st.none() | names_shown)
names = st.from_regex(r"\AX-[A-Za-z0-9-]{1,60}\Z").filter(lambda name: name.lower() != "x-priority")
headers = st.lists(st.tuples(names, line), max_size=4, unique_by=lambda pair: pair[0].lower())
attachments = st.builds(
    Attachment,
    filename=line.filter(bool),
    content=st.binary(max_size=300),
    content_type=st.sampled_from(["application/pdf", "image/png", "text/plain; charset=latin-1"]),
    content_id=st.none() | st.from_regex(r"\A[a-z0-9.]{1,30}(@[a-z.]{1,20})?\Z"),
)
mails = st.builds(
    EmailMessage,
    job_id=st.uuids(),
    sender=mailboxes,
    to=mailboxes,
    subject=line,
    message_id=st.builds(lambda job: f"{job}@acme.dev", st.uuids()),
    date=st.datetimes(
        datetime(1970, 1, 1),
        datetime(2100, 1, 1),
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=-30))]),
    ),
    text=st.none() | bodies,
    html=st.none() | bodies,
    cc=st.lists(addresses, max_size=5).map(tuple),
    reply_to=st.none() | addresses,
    headers=headers.map(tuple),
    attachments=st.lists(attachments, max_size=3).map(tuple),
)


def parsed(mail):
    # As text: from bytes the parser turns RFC 6532 addresses into surrogates.
    return email.message_from_string(write(mail).decode(), policy=policy.default)


def a_label(address):
    name, _, host = address.rpartition("@")
    return f"{name}@{host.encode('idna').decode()}"


def read_text(text):
    """What a reader gets of a text: one kind of line end, one at the end."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.endswith("\n") else text + "\n"


def content(part):
    return part.get_content().replace("\r\n", "\n")


def addresses_of(mail, name):
    """Read by the older half of the library: the newer one puts a blank between encoded words of a name."""
    field = email.message_from_string(write(mail).decode(), policy=policy.compat32)[name]
    unfolded = "".join(field.splitlines())
    return [
        (str(make_header(decode_header(shown))), address)
        for shown, address in getaddresses([unfolded])
    ]


@settings(max_examples=150, deadline=None)
@given(mails)
def test_pythons_parser_reads_back_what_went_in(mail):
    found = parsed(mail)
    assert not found.defects
    assert found["Subject"] == mail.subject
    assert addresses_of(mail, "From") == [(mail.sender.name or "", a_label(mail.sender.address))]
    assert addresses_of(mail, "To") == [(mail.to.name or "", a_label(mail.to.address))]
    copies = addresses_of(mail, "Cc") if mail.cc else []
    assert copies == [("", a_label(address)) for address in mail.cc]
    if mail.reply_to:
        assert addresses_of(mail, "Reply-To") == [("", a_label(mail.reply_to))]
    assert found["Date"].datetime == mail.date.replace(microsecond=0)
    assert found["Message-ID"] == f"<{mail.message_id}>"
    assert found["X-Tocsin-Job-Id"] == str(mail.job_id)
    for name, value in mail.headers:
        assert found[name] == value
    texts = [part for part in found.walk() if part.get_content_type() == "text/plain"]
    if mail.text is not None or mail.html is None:
        assert content(texts[0]) == read_text(mail.text or "")
    if mail.html is not None:
        htmls = [part for part in found.walk() if part.get_content_type() == "text/html"]
        assert content(htmls[0]) == read_text(mail.html)
    files = [part for part in found.walk() if part.get_content_disposition()]
    shape = sorted(
        # Not get_filename(), which trims.
        (
            part["Content-Disposition"].params["filename"],
            part.get_payload(decode=True),
            str(part["Content-ID"] or ""),
        )
        for part in files
    )
    assert shape == sorted(
        (each.filename, each.content, f"<{each.content_id}>" if each.content_id else "")
        for each in mail.attachments
    )


@settings(max_examples=150, deadline=None)
@given(mails)
def test_every_line_is_short_ends_in_crlf_and_is_ascii_unless_smtputf8_is_needed(mail):
    raw = write(mail)
    assert raw == write(mail)
    assert raw.endswith(b"\r\n")
    lines = raw.split(b"\r\n")
    assert not any(b"\r" in each or b"\n" in each or b"\0" in each for each in lines)
    assert max(map(len, lines)) <= 998
    assert raw.isascii() is not needs_smtputf8(mail)
    assert raw.partition(b"\r\n\r\n")[2].isascii()


words = st.lists(st.text("abcé漢xyz,.", min_size=1, max_size=25), min_size=1, max_size=30)


@settings(deadline=None)
@given(words.map(" ".join), words.map(" ".join), st.lists(st.just("a.b.c@example.com"), max_size=9))
def test_header_lines_fold_at_78_and_encoded_words_stay_within_75(subject, name, cc):
    mail = replace(MAIL, subject=subject, to=Mailbox("jane@example.com", name), cc=tuple(cc))
    head = write(mail).partition(b"\r\n\r\n")[0].decode("ascii").split("\r\n")
    for each in head:
        assert len(each) <= 78
        assert each.strip()
        found = re.findall(r"=\?[^ ]*\?=", each)
        assert all(len(word) <= 75 for word in found)
        assert not found or len(each) <= 76
        for word in found:
            # Each word decodes by itself: no character is split between two.
            [(raw, charset)] = decode_header(word)
            raw.decode(charset)


def shape(part):
    """What a reader can tell of a part and of all below it."""
    if part.is_multipart():
        return (part.get_content_type(), [shape(each) for each in part.iter_parts()])
    raw = part.get_payload(decode=True).replace(b"\r\n", b"\n")
    return (
        part.get_content_type(),
        part.get_content_disposition(),
        part.get_filename(),
        part["Content-ID"],
        raw,
    )


@settings(max_examples=60, deadline=None)
@given(
    text=bodies.map(read_text),
    html=st.none() | bodies.map(read_text),
    files=st.lists(
        st.builds(
            Attachment,
            filename=st.text("abcdé漢. ", min_size=1, max_size=90).map(str.strip).filter(bool),
            content=st.binary(max_size=200),
            content_type=st.just("application/pdf"),
            content_id=st.none() | st.from_regex(r"\A[a-z0-9]{1,9}@a\.b\Z"),
        ),
        max_size=3,
    ),
    # Short: the standard library loses a blank where it folds between two encoded words.
    subject=st.text("abc é漢,.", max_size=15).map(str.strip),
)
def test_it_says_the_same_as_the_standard_librarys_generator(text, html, files, subject):
    if html is None:
        files = [replace(each, content_id=None) for each in files]
    ours = replace(MAIL, text=text, html=html, attachments=tuple(files), subject=subject)
    theirs = email.message.EmailMessage(policy=policy.SMTP)
    theirs["From"] = Address("Acme", addr_spec="news@acme.dev")
    theirs["To"] = Address("Jane Doe", addr_spec="jane@example.com")
    theirs["Subject"] = subject
    theirs["Date"] = AT
    theirs["Message-ID"] = f"<{MAIL.message_id}>"
    theirs.set_content(text, cte="base64")
    if html is not None:
        theirs.add_alternative(html, subtype="html", cte="base64")
    for each in files:
        if each.content_id:
            theirs.get_body(("related", "html")).add_related(
                each.content,
                "application",
                "pdf",
                filename=each.filename,
                disposition="inline",
                cid=f"<{each.content_id}>",
            )
    for each in files:
        if not each.content_id:
            theirs.add_attachment(each.content, "application", "pdf", filename=each.filename)
    expected = email.message_from_bytes(theirs.as_bytes(), policy=policy.default)
    found = parsed(ours)
    assert shape(found) == shape(expected)
    for name in ("From", "To", "Subject", "Date", "Message-ID", "MIME-Version"):
        assert found[name] == expected[name]
