"""The connections to one SMTP account: at most `size`, reused while the server keeps them open.

A connection that the server closed while it rested costs nothing but a new one: the mail that met it is tried
once more on a fresh connection, because none of it had been sent.
"""

import asyncio
import ssl
from collections import deque

from tocsin.domain.outcome import Outcome, Throttled, Transient
from tocsin.wire.smtp.account import Account
from tocsin.wire.smtp.session import Session, open_session, tls_context
from tocsin.wire.smtp.transaction import Delivery, Envelope, deliver

POOL_SIZE = 10
MAILS_PER_CONNECTION = 100
"""Many servers close after as many; to leave first saves the mail that would notice."""

IDLE_S = 10.0
CEILING_S = 60.0
"""How long a server that refused one more connection is not asked for one."""


class SmtpPool:
    """Sends mails, each over a connection of its own for that time. Close with `aclose`."""

    def __init__(
        self,
        account: Account,
        *,
        size: int = POOL_SIZE,
        mails_per_connection: int = MAILS_PER_CONNECTION,
        idle_s: float = IDLE_S,
    ) -> None:
        self._account = account
        self._size = size
        self._mails_per_connection = mails_per_connection
        self._idle_s = idle_s
        self._context: ssl.SSLContext | None = None
        self._idle: list[Session] = []
        # Connections, with those being made; and those that were made.
        self._open = 0
        self._live = 0
        self._waiting: deque[asyncio.Future[Session | None]] = deque()
        self._sweeper: asyncio.TimerHandle | None = None
        self._ceiling = size
        self._ceiling_until = 0.0
        self._closed = False

    async def send(self, envelope: Envelope) -> Delivery:
        """Send one mail; whatever the server or the network does is in the Delivery."""
        session = await self._acquire()
        if not isinstance(session, Session):
            return Delivery(session)
        try:
            reused = session.served > 0
            delivery = await deliver(session, envelope)
            if delivery.unsent and reused:
                session.quit()
                fresh = await self._connect()
                if not isinstance(fresh, Session):
                    return Delivery(fresh)
                session = fresh
                delivery = await deliver(session, envelope)
        except BaseException:
            # Cancelled in the middle of a mail: nobody knows what the next reply would answer.
            session.link.abort()
            raise
        else:
            return delivery
        finally:
            self._release(session)

    async def aclose(self) -> None:
        """Say QUIT on every connection; nothing may be in flight."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        idle, self._idle = self._idle, []
        self._open -= len(idle)
        self._live -= len(idle)
        await asyncio.gather(*(session.aclose() for session in idle))

    async def _acquire(self) -> Session | Outcome:
        if self._closed:
            raise RuntimeError("send on a closed SmtpPool")
        while True:
            while self._idle:
                session = self._idle.pop()
                if session.link.quiet:
                    return session
                self._drop(session)
            if self._open < self._limit():
                self._open += 1
                try:
                    opened = await self._connect()
                except BaseException:
                    self._free()
                    raise
                if isinstance(opened, Session):
                    self._live += 1
                    return opened
                self._free()
                if not self._lowered_ceiling(opened):
                    return opened
            else:
                handed = await self._wait_for_one()
                if handed is not None:
                    return handed

    async def _connect(self) -> Session | Outcome:
        if self._context is None and self._account.security != "none":
            self._context = tls_context(self._account)
        return await open_session(self._account, self._context)

    async def _wait_for_one(self) -> Session | None:
        """A session that another mail is done with, or None when there may be room for a new one."""
        turn: asyncio.Future[Session | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(turn.result())
            raise

    def _release(self, session: Session) -> None:
        if session.link.quiet and session.served < self._mails_per_connection and not self._closed:
            self._pass_on(session)
        else:
            self._drop(session)

    def _pass_on(self, session: Session | None) -> None:
        """To whoever has waited longest; nobody: a session rests."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(session)
                return
        if session is not None:
            loop = asyncio.get_running_loop()
            session.rested_at = loop.time()
            self._idle.append(session)
            if self._sweeper is None:
                self._sweeper = loop.call_later(self._idle_s, self._sweep)

    def _drop(self, session: Session) -> None:
        session.quit()
        self._live -= 1
        self._free()

    def _free(self) -> None:
        self._open -= 1
        self._pass_on(None)

    def _sweep(self) -> None:
        """Close what has rested for `idle_s`: before the server does, and to hold nothing that is not needed."""
        loop = asyncio.get_running_loop()
        self._sweeper = None
        while self._idle and self._idle[0].rested_at + self._idle_s <= loop.time():
            self._drop(self._idle.pop(0))
        if self._idle:
            self._sweeper = loop.call_at(self._idle[0].rested_at + self._idle_s, self._sweep)

    def _limit(self) -> int:
        lowered = self._live > 0 and asyncio.get_running_loop().time() < self._ceiling_until
        return self._ceiling if lowered else self._size

    def _lowered_ceiling(self, refusal: Outcome) -> bool:
        """Whether the mail shall wait for one of the open connections: the server takes no more of them."""
        if self._live == 0:
            # The server is gone: whoever waits shall hear it from an attempt of his own, not one by one.
            for _ in range(len(self._waiting)):
                self._pass_on(None)
        if self._live == 0 or not isinstance(refusal, Transient | Throttled):
            return False
        self._ceiling = self._live
        self._ceiling_until = asyncio.get_running_loop().time() + CEILING_S
        return True
