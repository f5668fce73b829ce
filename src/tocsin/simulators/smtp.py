"""A real SMTP server for demos and crash tests: aiosmtpd, in a process of its own, journaling what it accepts.

`python -m tocsin.simulators.smtp --port 0 --journal FILE` prints `{"host": …, "port": …}` on one line as soon as it
listens, on loopback only, and runs until SIGINT or SIGTERM. A mail is in the journal, one JSON line, before its
250 leaves. `--fast` serves simulators/smtp_sink.py instead: our own ceiling rather than aiosmtpd's.
"""

import argparse
import asyncio
import signal
import sys
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import uvloop
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tocsin.simulators.smtp_mail import Mailbook
from tocsin.simulators.smtp_script import Manners
from tocsin.simulators.smtp_sink import HOST, SmtpSink
from tocsin.simulators.smtp_sink import serving as serving_sink

MAIL_MAX = 32 << 20


class _Taker:
    """aiosmtpd's handler: takes everything, says that it may be spoken to in one go."""

    def __init__(self, book: Mailbook) -> None:
        self._book = book

    async def handle_EHLO(  # noqa: N802 - the library's name
        self,
        server: SMTP,  # noqa: ARG002
        session: Session,
        envelope: Envelope,  # noqa: ARG002
        hostname: str,
        responses: list[str],
    ) -> list[str]:
        session.host_name = hostname
        # aiosmtpd reads line by line from a buffer, so pipelined commands are safe with it.
        return [responses[0], "250-PIPELINING", *responses[1:]]

    async def handle_DATA(  # noqa: N802 - the library's name
        self,
        server: SMTP,  # noqa: ARG002
        session: Session,  # noqa: ARG002
        envelope: Envelope,
    ) -> str:
        raw = envelope.original_content or b""
        taken = self._book.take(envelope.mail_from or "", tuple(envelope.rcpt_tos), raw)
        return f"250 2.0.0 Ok: queued as {taken}"


@asynccontextmanager
async def serving(
    book: Mailbook, port: int = 0, users: dict[str, str] | None = None
) -> AsyncIterator[int]:
    """Serve on loopback while the block runs; yields the port. users: name to password, MAIL then needs AUTH."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _protocol(book, users or {}, loop), HOST, port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _protocol(book: Mailbook, users: dict[str, str], loop: asyncio.AbstractEventLoop) -> SMTP:
    def log_in(
        server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: object
    ) -> AuthResult:
        del server, session, envelope, mechanism
        known = isinstance(given, LoginPassword) and (
            users.get(given.login.decode()) == given.password.decode()
        )
        return AuthResult(success=known, handled=False)

    with warnings.catch_warnings():
        # On loopback a password needs no TLS.
        warnings.filterwarnings("ignore", message="Requiring AUTH while not requiring TLS")
        return _smtp(book, users, log_in, loop)


def _smtp(
    book: Mailbook,
    users: dict[str, str],
    log_in: Callable[[SMTP, Session, Envelope, str, object], AuthResult],
    loop: asyncio.AbstractEventLoop,
) -> SMTP:
    return SMTP(
        _Taker(book),
        hostname="sim.example",
        data_size_limit=MAIL_MAX,
        enable_SMTPUTF8=True,
        auth_required=bool(users),
        auth_require_tls=False,
        authenticator=log_in if users else None,
        loop=loop,
    )


async def _serve_until_signal(asked: argparse.Namespace, book: Mailbook) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    users = dict([asked.user.split(":", 1)]) if asked.user else {}
    server = (
        serving_sink(SmtpSink(Manners(users=users), book), asked.port)
        if asked.fast
        else serving(book, asked.port, users)
    )
    async with server as port:
        line = msgspec.json.encode({"host": HOST, "port": port})
        sys.stdout.write(line.decode() + "\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tocsin.simulators.smtp", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 is any free one")
    parser.add_argument("--journal", type=Path, help="append a JSON line per accepted mail")
    parser.add_argument("--keep", action="store_true", help="journal the mail itself, in base64")
    parser.add_argument("--user", metavar="NAME:PASSWORD", help="mail needs AUTH with these")
    parser.add_argument("--fast", action="store_true", help="the raw sink instead of aiosmtpd")
    asked = parser.parse_args()
    book = Mailbook(asked.journal, keep=asked.keep)
    try:
        uvloop.run(_serve_until_signal(asked, book))
    finally:
        book.close()


if __name__ == "__main__":
    main()
