"""A fast SMTP server that takes everything, or fails exactly as it is told to: for tests and for ceilings.

For what a server does that nobody scripted, see simulators/smtp.py.
"""

import asyncio
import base64
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from tocsin.simulators.smtp_mail import Mailbook
from tocsin.simulators.smtp_script import Manners, SmtpFault, SmtpScript, Step

HOST = "127.0.0.1"
COMMAND_MAX = 16_384
MAIL_MAX = 64 << 20


class SmtpSink:
    """The state all connections share.

    Once `listen` is set, `dialogue` is every command line in order, and `breaths` the verbs of those that came
    in one piece, so that pipelining can be seen.
    """

    def __init__(self, manners: Manners | None = None, book: Mailbook | None = None) -> None:
        self.manners = manners or Manners()
        self.book = book or Mailbook(keep=True)
        self.script = SmtpScript()
        self.connections = 0
        self.open: set[Conversation] = set()
        self.listen = False
        self.dialogue: list[str] = []
        self.breaths: list[str] = []
        self._news = asyncio.Event()

    async def heard(self, verb: str, times: int = 1) -> None:
        """Wait until so many commands with this verb have come in all; needs `listen`."""
        while " ".join(self.breaths).count(verb) < times:
            self._news.clear()
            await self._news.wait()

    def hear(self, verbs: list[str]) -> None:
        """Note what came in one piece."""
        self.breaths.append(" ".join(verbs))
        self._news.set()

    def drop_idle(self, *, reset: bool = False) -> int:
        """Close every connection that is between two mails, as servers do with resting ones; how many."""
        idle = [each for each in self.open if each.idle]
        for conversation in idle:
            conversation.end(reset=reset)
        return len(idle)


@asynccontextmanager
async def serving(sink: SmtpSink, port: int = 0) -> AsyncIterator[int]:
    """Serve on loopback while the block runs; yields the port. Port 0 is any free one."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Conversation(sink), HOST, port, ssl=sink.manners.tls, backlog=1024
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        ending = [conversation.gone for conversation in sink.open]
        for conversation in list(sink.open):
            conversation.end()
        await asyncio.gather(*ending)
        await server.wait_closed()


class Conversation(asyncio.Protocol):
    """One connection."""

    def __init__(self, sink: SmtpSink) -> None:
        self.idle = False
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._rest = b""
        self._secure = sink.manners.tls is not None
        self._user: str | None = None
        self._asked: Callable[[bytes], None] | None = None
        self._sender: str | None = None
        self._recipients: list[str] = []
        self._in_data = False
        self._deaf = False
        self._mails = 0
        self._upgrading: asyncio.Future[asyncio.Transport | None] | None = None

    # ------------------------------------------------------------------ called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        sink = self._sink
        sink.connections += 1
        sink.open.add(self)
        most = sink.manners.connections_max
        if most is not None and len(sink.open) > most:
            self._say("421 4.7.0 sim.example too many connections from you", close=True)
            return
        if not self._faulty("connect"):
            self._say("220 sim.example ESMTP")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's name
        self._sink.open.discard(self)
        if not self.gone.done():
            self.gone.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self.idle = False
        self._rest += data
        if self._upgrading is not None:
            # TLS is up, and the loop has not yet given us the transport to answer through.
            return
        self._work()

    def _work(self) -> None:
        heard_before = len(self._sink.dialogue)
        while self._next():
            pass
        if len(self._sink.dialogue) > heard_before:
            self._sink.hear([line[:4] for line in self._sink.dialogue[heard_before:]])
        if not self._deaf and len(self._rest) > (MAIL_MAX if self._in_data else COMMAND_MAX):
            self._say("500 5.5.2 line too long", close=True)

    def end(self, *, reset: bool = False) -> None:
        self._deaf = True
        if self._upgrading is not None:
            self._upgrading.cancel()
        if reset:
            connection: Any = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
        else:
            self._transport.close()

    # ------------------------------------------------------------------ lines and mails

    def _next(self) -> bool:
        """Work off one command or one mail; False when more bytes are needed, or no more are heard."""
        if self._deaf:
            return False
        if self._in_data:
            return self._mail()
        line, found, rest = self._rest.partition(b"\r\n")
        if not found:
            return False
        self._rest = rest
        if self._asked is not None:
            answered, self._asked = self._asked, None
            answered(line)
            return True
        if self._sink.listen:
            self._sink.dialogue.append(line.decode("utf-8", "replace"))
        self._command(line)
        return True

    def _mail(self) -> bool:
        fault = self._sink.script.peek("body")
        if fault is not None and fault.early and self._rest:
            self._in_data = False
            return self._faulty("body")
        if self._rest.startswith(b".\r\n"):
            raw, self._rest = b"", self._rest[3:]
        else:
            end = self._rest.find(b"\r\n.\r\n")
            if end < 0:
                return False
            raw, self._rest = self._rest[: end + 2], self._rest[end + 5 :]
        self._in_data = False
        self._mails += 1
        recipients, self._recipients = tuple(self._recipients), []
        sender, self._sender = self._sender or "", None
        if fault is not None and not fault.accept and fault.delay_s is None:
            return self._faulty("body")
        if not recipients:
            self._say("554 5.5.1 no valid recipients")
            return True
        if raw.startswith(b"."):
            raw = raw[1:]
        taken = self._sink.book.take(sender, recipients, raw.replace(b"\r\n..", b"\r\n."))
        self.idle = not self._rest
        if not self._faulty("body", f"250 2.0.0 Ok: queued as {taken}"):
            self._say(f"250 2.0.0 Ok: queued as {taken}")
        return True

    def _command(self, line: bytes) -> None:
        verb = line[:4].upper()
        match verb:
            case b"MAIL":
                self._mail_from(line)
            case b"RCPT":
                self._rcpt_to(line)
            case b"DATA":
                self._data()
            case b"EHLO" | b"HELO":
                self._hello(extended=verb == b"EHLO")
            case b"RSET":
                self._sender, self._recipients = None, []
                self._say("250 2.0.0 Ok")
            case b"NOOP":
                self._say("250 2.0.0 Ok")
            case b"QUIT":
                self._say("221 2.0.0 Bye", close=True)
            case b"STAR":
                self._starttls()
            case b"AUTH":
                self._auth(line)
            case _:
                self._say("502 5.5.2 command not recognized")

    # ------------------------------------------------------------------ the transaction

    def _mail_from(self, line: bytes) -> None:
        most = self._sink.manners.mails_per_connection
        if most is not None and self._mails >= most:
            self._say("421 4.3.2 sim.example enough for one connection", close=True)
        elif self._faulty("mail"):
            pass
        elif self._sink.manners.users and self._user is None:
            self._say("530 5.7.0 Authentication required")
        elif self._sender is not None:
            self._say("503 5.5.1 nested MAIL command")
        else:
            self._sender = _path(line)
            self._say("250 2.1.0 Ok")

    def _rcpt_to(self, line: bytes) -> None:
        if self._faulty("rcpt"):
            return
        if self._sender is None:
            self._say("503 5.5.1 need MAIL command")
            return
        address = _path(line)
        refusal = self._sink.manners.reply_to(address)
        if refusal is None:
            self._recipients.append(address)
        self._say(refusal or "250 2.1.5 Ok")

    def _data(self) -> None:
        if self._faulty("data"):
            return
        if self._recipients or (self._sink.manners.data_without_recipients and self._sender):
            self._in_data = True
            self._say("354 End data with <CR><LF>.<CR><LF>")
        else:
            self._say("503 5.5.1 need RCPT command")

    # ------------------------------------------------------------------ the session

    def _hello(self, *, extended: bool) -> None:
        manners = self._sink.manners
        self._sender, self._recipients = None, []
        if extended and not manners.knows_ehlo:
            self._say("502 5.5.1 EHLO not implemented")
        elif extended and not self._faulty("ehlo"):
            offers = list(manners.extensions)
            if manners.starttls is not None and not self._secure:
                offers.append("STARTTLS")
            if manners.users:
                offers.append(f"AUTH {manners.mechanisms}")
            lines = ["sim.example", *offers]
            marked = [f"250-{text}" for text in lines[:-1]] + [f"250 {lines[-1]}"]
            self._say("\r\n".join(marked))
        elif not extended:
            self._say("250 sim.example")

    def _starttls(self) -> None:
        context = self._sink.manners.starttls
        if self._faulty("starttls"):
            return
        if context is None or self._secure:
            self._say("502 5.5.1 STARTTLS not available")
            return
        self._transport.write(
            b"220 2.0.0 Ready to start TLS\r\n" + self._sink.manners.after_starttls
        )
        self._secure = True
        self._rest = b""
        upgrade = self._loop.start_tls(self._transport, self, context, server_side=True)
        self._upgrading = asyncio.ensure_future(upgrade)
        self._upgrading.add_done_callback(self._upgraded)

    def _upgraded(self, upgrade: "asyncio.Future[asyncio.Transport | None]") -> None:
        # A client that does not trust the certificate leaves here.
        if upgrade.cancelled() or upgrade.exception() is not None or upgrade.result() is None:
            self._transport.abort()
            # asyncio does not tell a protocol of a handshake that failed.
            self.connection_lost(None)
        else:
            self._transport = cast("asyncio.Transport", upgrade.result())
            self._upgrading = None
            self._work()

    def _auth(self, line: bytes) -> None:
        if self._faulty("auth"):
            return
        _, mechanism, *initial = line.decode("ascii", "replace").split()
        if mechanism.upper() == "PLAIN" and initial:
            _, user, password = base64.b64decode(initial[0]).decode().split("\0")
            self._log_in(user, password)
        elif mechanism.upper() == "LOGIN":
            self._ask(b"Username:", self._login_name)
        else:
            self._say("504 5.5.4 mechanism not supported")

    def _ask(self, prompt: bytes, answered: Callable[[bytes], None]) -> None:
        self._asked = answered
        self._say("334 " + base64.b64encode(prompt).decode())

    def _login_name(self, line: bytes) -> None:
        user = base64.b64decode(line).decode()
        self._ask(b"Password:", lambda given: self._log_in(user, base64.b64decode(given).decode()))

    def _log_in(self, user: str, password: str) -> None:
        if self._sink.manners.users.get(user) == password:
            self._user = user
            self._say("235 2.7.0 Authentication successful")
        else:
            self._say("535 5.7.8 Authentication credentials invalid")

    # ------------------------------------------------------------------ answers

    def _say(self, reply: str, *, close: bool = False) -> None:
        self._transport.write(reply.encode() + b"\r\n")
        if close:
            self.end()

    def _faulty(self, step: Step, honest: str = "") -> bool:
        """Whether a fault was due here; it has then been played."""
        fault = self._sink.script.take(step)
        if fault is None:
            return False
        self._play(fault, honest)
        return True

    def _play(self, fault: SmtpFault, honest: str) -> None:
        if fault.delay_s is not None:
            self._loop.call_later(fault.delay_s, self._say, fault.reply or honest)
            return
        if fault.reply is not None:
            self._say(fault.reply)
        if fault.close or fault.reset:
            self.end(reset=fault.reset)
        elif fault.reply is None:
            self._deaf = True
            self._transport.pause_reading()


def _path(line: bytes) -> str:
    """The address of MAIL FROM:<…> or RCPT TO:<…>."""
    return line[line.find(b"<") + 1 : line.rfind(b">")].decode("utf-8", "replace")
