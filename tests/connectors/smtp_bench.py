"""The SMTP connector against the scripted sink, for the contract suite."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

from tests.connectors.contract import SECRET, THROTTLE_S, Bench, Trouble
from tests.support.smtp import PATIENT
from tocsin.connectors.email.smtp import Smtp, SmtpConfig
from tocsin.simulators.smtp_script import Manners, SmtpFault
from tocsin.simulators.smtp_sink import SmtpSink, serving
from tocsin.wire.smtp import Timeouts

USER = "acme"
HASTY = Timeouts(connect=5, greeting=5, command=5, block=5, final_dot=0.2, quit=0.2)
ALWAYS = 20

_FAULTS = {
    Trouble.THROTTLED: SmtpFault(
        "mail", f"421 4.7.0 rate limit, retry in {THROTTLE_S:.0f} seconds", times=ALWAYS
    ),
    Trouble.FAILING: SmtpFault("mail", "451 4.3.0 local error", times=ALWAYS),
    Trouble.SILENT: SmtpFault("body", accept=True, times=ALWAYS),
    Trouble.LOST: SmtpFault("body", accept=True, reset=True, times=ALWAYS),
    Trouble.MALFORMED: SmtpFault("body", "all is well", accept=True, times=ALWAYS),
    Trouble.MALFORMED_FAILURE: SmtpFault("mail", "it failed", times=ALWAYS),
}


@asynccontextmanager
async def smtp(trouble: Trouble) -> AsyncIterator[Bench]:
    password = "another" if trouble is Trouble.KEY_REFUSED else SECRET
    sink = SmtpSink(Manners(users={USER: password}))
    if trouble in _FAULTS:
        sink.script.add(_FAULTS[trouble])
    async with AsyncExitStack() as stack:
        if trouble is Trouble.REFUSED:
            bound = stack.enter_context(socket.socket())
            bound.bind(("127.0.0.1", 0))
            port = bound.getsockname()[1]
        else:
            port = await stack.enter_async_context(serving(sink))
        timeouts = HASTY if trouble is Trouble.SILENT else PATIENT
        connector = Smtp(
            SmtpConfig("127.0.0.1", port, USER, SECRET, security="none", timeouts=timeouts)
        )
        stack.push_async_callback(connector.aclose)
        mails = sink.book.mails
        yield Bench(
            connector,
            accepted=lambda: [UUID(mail.job_id) for mail in mails],
            job_of=lambda sent: next(UUID(mail.job_id) for mail in mails if mail.id == sent),
        )
