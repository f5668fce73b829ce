import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.wire.smtp.masking import DETAIL_MAX, masked
from tocsin.wire.smtp.receipt import receipt
from tocsin.wire.smtp.replies import REPLY_LINES_MAX, GarbledReplyError, Reply, ReplyReader
from tocsin.wire.smtp.session import read_capabilities
from tocsin.wire.smtp.transaction import stuffed

texts = st.lists(st.text("abc 0123.-é", max_size=30).map(str.encode), min_size=1, max_size=5)
replies = st.builds(lambda code, lines: Reply(code, tuple(lines)), st.integers(200, 599), texts)


def on_the_wire(reply):
    marks = ["-"] * (len(reply.lines) - 1) + [" "]
    return b"".join(
        f"{reply.code}{mark}".encode() + line + b"\r\n"
        for mark, line in zip(marks, reply.lines, strict=True)
    )


@given(st.lists(replies, max_size=6), st.data())
def test_replies_are_read_whole_however_the_bytes_arrive(sent, data):
    stream = b"".join(map(on_the_wire, sent))
    reader = ReplyReader()
    found = []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:cut])
        stream = stream[cut:]
    assert found == sent
    assert reader.empty


def test_bare_codes_and_bare_newlines_are_read_as_replies():
    assert ReplyReader().feed(b"250\r\n354 go\n") == [Reply(250, (b"",)), Reply(354, (b"go",))]


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\r\n",
        b"25\r\n",
        b"250x\r\n",
        b"250-a\r\n251 b\r\n",
        b"250 " + b"x" * 3000,
        b"250 " + b"x" * 3000 + b"\r\n",
        b"250-x\r\n" * (REPLY_LINES_MAX + 1),
        b"\x16\x03\x01\x00\x05hello\n",
    ],
    ids=range(9),
)
def test_what_is_no_reply_or_has_no_end_is_garbled(garbage):
    with pytest.raises(GarbledReplyError):
        ReplyReader().feed(garbage)


def test_an_enhanced_status_is_read_only_where_it_stands():
    assert Reply(550, (b"5.1.1 gone",)).enhanced == (5, 1, 1)
    assert Reply(452, (b"4.5.3",)).enhanced == (4, 5, 3)
    assert Reply(550, (b"no such 5.1.1 user",)).enhanced is None
    assert Reply(220, (b"10.0.0.1 ready",)).enhanced is None


def test_capabilities_are_read_in_any_case_and_in_the_old_form_of_auth():
    found = read_capabilities(
        Reply(
            250,
            (
                b"mx.example",
                b"pipelining",
                b"SIZE 1000",
                b"8bitmime",
                b"AUTH PLAIN",
                b"AUTH=LOGIN X",
                b"STARTTLS",
                b"",
            ),
        )
    )
    assert found.pipelining
    assert found.eight_bit
    assert found.starttls
    assert not found.smtputf8
    assert found.size == 1000
    assert found.auth == {"PLAIN", "LOGIN", "X"}
    for unlimited in (b"SIZE", b"SIZE 0", b"SIZE many"):
        capabilities = read_capabilities(Reply(250, (b"mx", unlimited)))
        assert capabilities.size is None
        assert capabilities.size_stated


def test_the_first_line_of_ehlo_is_a_name_and_no_capability():
    assert not read_capabilities(Reply(250, (b"STARTTLS",))).starttls


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2.0.0 Ok: queued as 4XyZ12Abc", "4XyZ12Abc"),
        ("OK id=1tAbCd-0001xY-2Z", "1tAbCd-0001xY-2Z"),
        ("Ok 0102018f3c2a1b2c-aaaa-bbbb-000000", "0102018f3c2a1b2c-aaaa-bbbb-000000"),
        ("2.0.0 Ok", None),
        ("Message accepted for delivery", None),
        ("Ok thanks", None),
    ],
)
def test_the_queue_id_is_taken_from_the_250_where_it_names_one(text, found):
    assert receipt(Reply(250, (text.encode(),))) == found


@pytest.mark.parametrize(
    "text",
    [
        "5.1.1 <jane.doe@example.com>: Recipient address rejected",
        "no mailbox jane.doe@example.com here",
        'user "jane doe"@example.com unknown',
        "bounces+jane.doe=40example.com unknown",
        "RCPT TO:<JANE.DOE@EXAMPLE.COM> refused",
        "user Jane.Doe unknown",
        "jane.doe%40example.com unknown",
        "jäne.doe@exämple.com",
    ],
)
def test_no_address_survives_in_a_detail(text):
    detail = masked(text, ["jane.doe@example.com"])
    assert "[address]" in detail
    assert "jane" not in detail.lower()
    assert "jäne" not in detail.lower()
    assert "@" not in detail


def test_a_detail_is_one_short_line_that_still_says_why():
    assert (
        masked("5.2.2 The email account is over quota", ["a@b.co"])
        == "5.2.2 The email account is over quota"
    )
    assert masked("a\r\n\x00b\x1b[31m   c\u2028d", []) == "a b [31m c d"
    assert len(masked("x y " * 200, [])) == DETAIL_MAX


def unstuffed(data):
    """As RFC 5321 §4.5.2 tells the receiver to read it."""
    lines = data.split(b"\r\n")
    return b"\r\n".join(line[1:] if line.startswith(b".") else line for line in lines)


@given(st.lists(st.text("ab.\t é", max_size=6), min_size=1, max_size=8))
def test_dot_stuffing_gives_back_the_mail_and_hides_every_lone_dot(lines):
    data = "".join(line + "\r\n" for line in lines).encode()
    sent = stuffed(data)
    assert unstuffed(sent) == data
    assert b"\r\n.\r\n" not in b"\r\n" + sent


@pytest.mark.parametrize(
    "data", [b"", b"a", b"a\n", b"a\r", b"a\r\n.\n", b"a\n.\r\n", b"a\r\n.\r\r\n", b"a\rb\r\n"]
)
def test_a_mail_whose_lines_servers_could_cut_differently_is_a_bug(data):
    with pytest.raises(ValueError, match="CRLF"):
        stuffed(data)
