"""A connection made ready to take mail: connect, TLS, EHLO, AUTH; or the Outcome that says why not."""

import asyncio
import socket
import ssl
from base64 import b64encode
from collections.abc import Sequence

from msgspec import Struct

from tocsin.domain.outcome import Misconfigured, Outcome, Transient
from tocsin.wire.smtp.account import Account
from tocsin.wire.smtp.link import Link
from tocsin.wire.smtp.replies import Reply
from tocsin.wire.smtp.verdict import Stage, judge

_NO_EHLO = frozenset({500, 501, 502, 504, 550})


class Capabilities(Struct, frozen=True):
    """What the server said to EHLO. size: octets it takes, None if it names no limit."""

    pipelining: bool = False
    eight_bit: bool = False
    smtputf8: bool = False
    starttls: bool = False
    size_stated: bool = False
    size: int | None = None
    auth: frozenset[str] = frozenset()


class Session:
    """A link on which MAIL may be said. served: mails tried on it; rested_at: loop time of its last use."""

    def __init__(self, link: Link, capabilities: Capabilities, account: Account) -> None:
        self.link = link
        self.capabilities = capabilities
        self.timeouts = account.timeouts
        self.served = 0
        self.rested_at = 0.0

    async def command(self, line: str) -> Reply | None:
        """One command and its reply; None if the link ended instead."""
        return await _command(self.link, line, self.timeouts.command)

    async def commands(self, lines: Sequence[str], essential: int) -> list[Reply]:
        """Replies in order: in one round trip with PIPELINING (RFC 2920), else one by one.

        Fewer than asked if the link ended; one by one also after a refusal among the first `essential`.
        """
        if self.capabilities.pipelining:
            self.link.write("".join(lines).encode())
            return await self.link.replies(len(lines), self.timeouts.command)
        replies: list[Reply] = []
        for index, line in enumerate(lines):
            reply = await self.command(line)
            if reply is None:
                break
            replies.append(reply)
            if index < essential and reply.code >= 300:
                break
        return replies

    def quit(self) -> None:
        """Say goodbye without waiting for the answer."""
        if self.link.quiet:
            self.link.write(b"QUIT\r\n")
        self.link.close()

    async def aclose(self) -> None:
        """Say goodbye and wait for the answer, within the timeout."""
        if self.link.quiet:
            self.link.write(b"QUIT\r\n")
            await self.link.replies(1, self.timeouts.quit)
        self.link.close()
        await self.link.gone(self.timeouts.quit)


def tls_context(account: Account) -> ssl.SSLContext:
    """Certificates verified, host names checked, TLS 1.2 or later."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if account.ca_pem is not None:
        context.load_verify_locations(cadata=account.ca_pem.decode("ascii"))
    return context


async def open_session(account: Account, context: ssl.SSLContext | None) -> Session | Outcome:
    """A new session; never one that is less safe than `account.security` asks."""
    link = await _connect(account, context if account.security == "tls" else None)
    if not isinstance(link, Link):
        return link
    try:
        opened = await _greet(link, account, context)
    except BaseException:
        link.abort()
        raise
    if not isinstance(opened, Session):
        link.abort()
    return opened


async def _connect(account: Account, context: ssl.SSLContext | None) -> Link | Outcome:
    try:
        async with asyncio.timeout(account.timeouts.connect):
            _, link = await asyncio.get_running_loop().create_connection(
                Link,
                account.host,
                account.port,
                ssl=context,
                server_hostname=account.host if context else None,
            )
    except OSError as failure:
        return _unreachable(failure)
    except UnicodeError:
        return Misconfigured("smtp_host", "the server's host name is none: check it")
    return link


async def _greet(link: Link, account: Account, context: ssl.SSLContext | None) -> Session | Outcome:
    greeting = await link.replies(1, account.timeouts.greeting)
    if not greeting:
        return _lost(link, "the connection ended before the greeting")
    if greeting[0].code != 220:
        return judge(Stage.GREETING, greeting[0])
    capabilities = await _hello(link, account)
    if account.security == "starttls" and isinstance(capabilities, Capabilities):
        refusal = await _start_tls(link, account, capabilities, context)
        if refusal is not None:
            return refusal
        # What was said in the clear may come from anybody: ask again (RFC 3207 §4.2).
        capabilities = await _hello(link, account)
    if not isinstance(capabilities, Capabilities):
        return capabilities
    if account.username is not None:
        refusal = await _authenticate(link, account, capabilities)
        if refusal is not None:
            return refusal
    return Session(link, capabilities, account)


async def _hello(link: Link, account: Account) -> Capabilities | Outcome:
    name = account.helo or _address_literal(link)
    reply = await _command(link, f"EHLO {name}\r\n", account.timeouts.command)
    if reply is not None and reply.code in _NO_EHLO:
        reply = await _command(link, f"HELO {name}\r\n", account.timeouts.command)
        if reply is not None and reply.code == 250:
            return Capabilities()
    if reply is None:
        return _lost(link, "the connection ended after EHLO")
    if reply.code != 250:
        return judge(Stage.EHLO, reply)
    return read_capabilities(reply)


def read_capabilities(reply: Reply) -> Capabilities:
    """The extensions of an EHLO reply: one keyword with parameters per line after the first (RFC 5321 §4.1.1.1)."""
    known: dict[str, list[str]] = {}
    for line in reply.lines[1:]:
        # `AUTH=LOGIN` is how servers before RFC 4954 wrote it.
        keyword, *parameters = line.decode("ascii", "replace").upper().replace(
            "=", " "
        ).split() or [""]
        known.setdefault(keyword, []).extend(parameters)
    size = next(iter(known.get("SIZE", [])), "")
    return Capabilities(
        pipelining="PIPELINING" in known,
        eight_bit="8BITMIME" in known,
        smtputf8="SMTPUTF8" in known,
        starttls="STARTTLS" in known,
        size_stated="SIZE" in known,
        # `SIZE 0` is "no fixed limit" (RFC 1870 §4).
        size=int(size) or None if size.isascii() and size.isdigit() else None,
        auth=frozenset(known.get("AUTH", [])),
    )


async def _start_tls(
    link: Link, account: Account, capabilities: Capabilities, context: ssl.SSLContext | None
) -> Outcome | None:
    if not capabilities.starttls or context is None or link.transport is None:
        return Misconfigured(
            "smtp_starttls_missing",
            "the server does not offer STARTTLS: check the port, or set the security to tls or none",
        )
    reply = await _command(link, "STARTTLS\r\n", account.timeouts.command)
    if reply is None:
        return _lost(link, "the connection ended after STARTTLS")
    if reply.code != 220:
        return judge(Stage.STARTTLS, reply)
    injected = not link.quiet
    if not injected:
        try:
            async with asyncio.timeout(account.timeouts.connect):
                transport = await asyncio.get_running_loop().start_tls(
                    link.transport, link, context, server_hostname=account.host
                )
        except OSError as failure:
            return _unreachable(failure)
        if transport is None:
            return _lost(link, "the connection ended while TLS was set up")
        link.connection_made(transport)
        injected = not link.quiet
    if injected:
        # Replies sent in the clear and read as if TLS had protected them (CVE-2011-0411, mirrored).
        return Transient("smtp_starttls_injection", "the server spoke in the clear after STARTTLS")
    return None


async def _authenticate(link: Link, account: Account, capabilities: Capabilities) -> Outcome | None:
    username, password = account.username or "", account.password or ""
    if "PLAIN" in capabilities.auth:
        lines = ["AUTH PLAIN " + _base64(f"\0{username}\0{password}")]
    elif "LOGIN" in capabilities.auth:
        lines = ["AUTH LOGIN", _base64(username), _base64(password)]
    else:
        return Misconfigured(
            "smtp_auth_missing",
            "the server offers neither AUTH PLAIN nor LOGIN: check the port and the security, "
            "or leave out the user name",
        )
    for line in lines:
        reply = await _command(link, f"{line}\r\n", account.timeouts.command)
        if reply is None:
            return _lost(link, "the connection ended during AUTH")
        if reply.code == 235:
            return None
        if reply.code != 334:
            return judge(Stage.AUTH, reply, (username,))
    return Misconfigured("smtp_auth_failed", "the server did not finish AUTH")


async def _command(link: Link, line: str, timeout_s: float) -> Reply | None:
    link.write(line.encode())
    replies = await link.replies(1, timeout_s)
    return replies[0] if replies else None


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode("ascii")


def _address_literal(link: Link) -> str:
    """How a client without a name of its own names itself (RFC 5321 §4.1.3)."""
    host = str(link.transport.get_extra_info("sockname")[0]) if link.transport else ""
    return f"[IPv6:{host.partition('%')[0]}]" if ":" in host else f"[{host}]"


def _unreachable(failure: OSError) -> Outcome:
    match failure:
        case ssl.SSLCertVerificationError():
            return Misconfigured(
                "smtp_certificate",
                f"the server's certificate is not trusted ({failure.verify_message}): "
                "check the host name, or trust its authority",
            )
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return Transient("smtp_closed", "the connection ended while TLS was set up", down=True)
        case ssl.SSLError():
            return Misconfigured(
                "smtp_tls", "the server does not speak TLS here: check the port and the security"
            )
        case TimeoutError():
            return Transient(
                "smtp_connect_timeout", "no connection within the time limit", down=True
            )
        case ConnectionRefusedError():
            return Transient("smtp_refused", "nothing listens at the server's address", down=True)
        case socket.gaierror():
            return Transient("smtp_dns", "the server's host name does not resolve", down=True)
        case _:
            return Transient("smtp_unreachable", "no connection to the server", down=True)


def _lost(link: Link, detail: str) -> Outcome:
    return Transient(f"smtp_{link.ended}", detail, down=True)
