"""A pool against the scripted SMTP sink, both in this process and loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tocsin.simulators.smtp_script import Manners, SmtpFault
from tocsin.simulators.smtp_sink import SmtpSink, serving
from tocsin.wire.smtp import Account, Delivery, Envelope, SmtpPool, Timeouts

#: Long enough for any answer on loopback; a test that waits for nothing sets its own.
PATIENT = Timeouts(connect=10, greeting=10, command=10, block=10, final_dot=10, quit=5)
MAIL = b"Subject: hello\r\n\r\nHello\r\n"
FROM, TO = "news@acme.dev", "jane@example.com"


@dataclass
class Bench:
    sink: SmtpSink
    pool: SmtpPool

    async def send(
        self, to: str = TO, data: bytes = MAIL, copies: tuple[str, ...] = ()
    ) -> Delivery:
        return await self.pool.send(Envelope(FROM, to, data, copies))

    @property
    def taken(self) -> list[tuple[str, ...]]:
        """The recipients of each mail the server took."""
        return [mail.recipients for mail in self.sink.book.mails]


@asynccontextmanager
async def smtp(
    manners: Manners | None = None,
    *faults: SmtpFault,
    size: int = 1,
    idle_s: float = 10.0,
    mails_per_connection: int = 100,
    timeouts: Timeouts = PATIENT,
    **account: object,
) -> AsyncIterator[Bench]:
    """`account`: fields of Account other than host, port and timeouts; security is none unless said."""
    sink = SmtpSink(manners)
    sink.listen = True
    sink.script.add(*faults)
    async with serving(sink) as port:
        fields = {"host": "127.0.0.1", "security": "none", **account}
        pool = SmtpPool(
            Account(port=port, timeouts=timeouts, **fields),
            size=size,
            idle_s=idle_s,
            mails_per_connection=mails_per_connection,
        )
        try:
            yield Bench(sink, pool)
        finally:
            await pool.aclose()
