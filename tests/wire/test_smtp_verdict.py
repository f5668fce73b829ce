import pytest

from tocsin.domain.outcome import (
    ContentRejected,
    Misconfigured,
    QuotaSpent,
    RecipientPermanent,
    RecipientTemporary,
    Throttled,
    Transient,
    Unknown,
    Unsupported,
)
from tocsin.wire.smtp.replies import Reply
from tocsin.wire.smtp.verdict import DESTINATION_REST_S, LANE_REST_S, Stage, judge


def judged(stage, text, **options):
    code, _, rest = text.partition(" ")
    return judge(stage, Reply(int(code), (rest.encode(),)), **options)


@pytest.mark.parametrize(
    "text",
    [
        "550 5.1.1 no such user",
        "550 5.1.2 bad destination domain",
        "501 5.1.3 bad address syntax",
        "551 5.1.6 mailbox has moved",
        "556 5.1.10 recipient domain has null MX",
        "550 5.2.1 mailbox disabled",
        "553 5.1.1 no such user",
    ],
)
def test_a_dead_address_is_suppressed(text):
    outcome = judged(Stage.RCPT, text)
    assert isinstance(outcome, RecipientPermanent)
    assert outcome.suppress
    assert outcome.code == "smtp_{}_{}".format(*text.split()[:2])


@pytest.mark.parametrize(
    "text",
    [
        "550 mailbox unavailable",
        "553 mailbox name not allowed",
        "554 5.7.1 <x@y.co>: Recipient address rejected: Access denied",
        "550 5.4.1 Recipient address rejected: Access denied",
        "501 Bad address syntax",
    ],
)
def test_other_recipient_refusals_are_final_and_suppress_nobody(text):
    outcome = judged(Stage.RCPT, text)
    assert isinstance(outcome, RecipientPermanent)
    assert not outcome.suppress


@pytest.mark.parametrize("stage", [Stage.RCPT, Stage.BODY])
@pytest.mark.parametrize("text", ["452 4.2.2 mailbox full", "552 5.2.2 over quota"])
def test_a_full_mailbox_is_temporary_whatever_the_code(stage, text):
    assert judged(stage, text) == RecipientTemporary("mailbox_full", text.partition(" ")[2])


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Stage.AUTH, "535 5.7.8 bad credentials"),
        (Stage.AUTH, "534 5.7.9 mechanism too weak"),
        (Stage.AUTH, "538 5.7.11 encryption required"),
        (Stage.AUTH, "500 unknown command"),
        (Stage.MAIL, "530 5.7.0 authentication required"),
        (Stage.RCPT, "530 5.7.0 authentication required"),
        (Stage.GREETING, "554 no SMTP service here"),
        (Stage.GREETING, "550 5.7.1 your address is blocked"),
        (Stage.STARTTLS, "502 not here"),
        (Stage.MAIL, "550 5.7.1 sender not allowed"),
        (Stage.MAIL, "550 5.1.1 no such sender"),
        (Stage.MAIL, "553 5.1.8 sender's domain does not exist"),
        (Stage.RCPT, "550 5.7.1 relaying denied"),
        (Stage.RCPT, "554 5.7.1 <x@y.co>: Relay access denied"),
        (Stage.RCPT, "550 relay not permitted"),
        (Stage.RCPT, "550 5.1.8 <x@y.co>: Sender address rejected: Domain not found"),
        (Stage.RCPT, "550 5.7.1 denied by policy"),
        (Stage.BODY, "550 5.7.26 unauthenticated mail is not accepted"),
        (Stage.BODY, "550 5.7.515 access denied, does not meet the required authentication level"),
        (Stage.BODY, "550 5.7.1 message failed DMARC"),
        (Stage.BODY, "554 5.7.1 Service unavailable; client host blocked using list.example"),
    ],
)
def test_our_account_sender_or_host_refused_stops_the_lane_and_fails_no_recipient(stage, text):
    assert isinstance(judged(stage, text), Misconfigured)


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Stage.BODY, "554 5.6.0 message rejected"),
        (Stage.BODY, "550 5.7.1 message looks like spam"),
        (Stage.BODY, "552 5.3.4 message too big"),
        (Stage.MAIL, "552 5.3.4 message too big"),
        (Stage.MAIL, "552 message size exceeds limit"),
        (Stage.BODY, "523 too long"),
        (Stage.BODY, "554 transaction failed"),
        (Stage.DATA, "554 no"),
    ],
)
def test_content_is_refused_for_good(stage, text):
    assert isinstance(judged(stage, text), ContentRejected)


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Stage.MAIL, "555 parameters not recognised"),
        (Stage.MAIL, "501 syntax"),
        (Stage.DATA, "503 sequence"),
    ],
)
def test_a_server_that_does_not_know_the_command_cannot_carry_the_mail(stage, text):
    assert isinstance(judged(stage, text), Unsupported)


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Stage.GREETING, "421 try again later"),
        (Stage.MAIL, "451 local error"),
        (Stage.MAIL, "452 4.3.1 insufficient storage"),
        (Stage.AUTH, "454 temporary authentication failure"),
        (Stage.RCPT, "451 4.3.0 lookup failed"),
        (Stage.RCPT, "452 4.5.3 too many recipients"),
        (Stage.RCPT, "451 4.7.25 no reverse DNS for your host"),
        (Stage.DATA, "421 4.3.2 shutting down"),
        (Stage.BODY, "451 4.3.0 queue file write error"),
    ],
)
def test_other_temporary_failures_cost_an_attempt(stage, text):
    assert isinstance(judged(stage, text), Transient)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("450 4.2.0 try later", "smtp_450_4.2.0"),
        ("450 mailbox busy", "smtp_450"),
        ("450 4.2.1 receives too quickly", "smtp_450_4.2.1"),
        ("451 4.7.1 Greylisting in action, please come back later", "greylisted"),
        ("450 4.2.0 Graylisted", "greylisted"),
    ],
)
def test_a_recipient_that_cannot_be_reached_yet_is_temporary(text, code):
    outcome = judged(Stage.RCPT, text)
    assert isinstance(outcome, RecipientTemporary)
    assert outcome.code == code


def test_a_rate_limit_rests_the_destination_or_before_any_recipient_the_lane():
    assert judged(Stage.RCPT, "450 4.7.28 unusual rate of mail") == Throttled(
        DESTINATION_REST_S, True
    )
    assert judged(Stage.BODY, "421 4.7.0 try again later") == Throttled(DESTINATION_REST_S, True)
    assert judged(Stage.RCPT, "451 4.7.650 rate limited") == Throttled(DESTINATION_REST_S, True)
    assert judged(Stage.RCPT, "450 too many messages, slow down") == Throttled(
        DESTINATION_REST_S, True
    )
    assert judged(Stage.MAIL, "421 4.7.0 too fast") == Throttled(LANE_REST_S)
    assert judged(Stage.GREETING, "421 too many connections") == Throttled(LANE_REST_S)
    ses = "454 Throttling failure: Maximum sending rate exceeded."
    assert judged(Stage.BODY, ses) == Throttled(LANE_REST_S)


def test_a_rest_that_the_server_names_is_kept_within_bounds():
    assert judged(Stage.RCPT, "450 4.7.0 rate limit, retry in 90 seconds") == Throttled(90.0, True)
    assert judged(Stage.RCPT, "450 4.7.0 rate limit, retry after 5 minutes") == Throttled(
        300.0, True
    )
    assert judged(Stage.MAIL, "421 4.7.0 come back in 99999 s") == Throttled(3600.0)
    assert judged(Stage.MAIL, "421 4.7.0 come back in 0 s") == Throttled(1.0)


def test_a_spent_daily_quota_is_no_burst_limit():
    for text in (
        "454 Throttling failure: Daily message quota exceeded.",
        "550 5.4.5 Daily user sending limit exceeded.",
    ):
        assert judged(Stage.BODY, text) == QuotaSpent("smtp_daily_quota")


def test_with_copies_what_is_said_after_data_suppresses_nobody():
    text = "550 5.1.1 no such user"
    assert judged(Stage.BODY, text).suppress
    assert isinstance(judged(Stage.BODY, text, alone=False), ContentRejected)


def test_an_answer_that_fits_no_step_is_unknown_only_after_the_mail():
    assert isinstance(judged(Stage.BODY, "354 go on"), Unknown)
    assert isinstance(judged(Stage.DATA, "250 ok"), Transient)


def test_no_detail_repeats_an_address():
    for stage in Stage:
        for code in (250, 421, 450, 452, 550, 552, 554):
            text = f"{code} {code // 100}.1.1 <jane@example.com> (jane) refused"
            outcome = judged(stage, text, addresses=("jane@example.com",))
            assert "jane" not in repr(outcome)
