"""What a mail costs: the MIME writer, the SMTP client into our fast sink and into aiosmtpd.

`python bench/mail.py [--mails 20000] [--connections 10] [--json]`. Each server runs in a process of its own:
`cpu_us_per_mail` is the client's, MIME writer included, `server_cpu_us_per_mail` the server's, and a second of
CPU divided by it is the server's own ceiling. `rate` is of both on the same machine.
"""

import argparse
import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import uvloop

from tocsin.connectors.base import Call
from tocsin.connectors.email.smtp import Smtp, SmtpConfig
from tocsin.domain.message import EmailMessage, Mailbox
from tocsin.domain.outcome import Accepted
from tocsin.wire.mime import write

WRITES = 20_000
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def mail(number: int) -> EmailMessage:
    """A plain notification: 0.4 kB of text, 1.2 kB of HTML, the two unsubscribe fields."""
    job_id = UUID(int=(7 << 76) + number)
    link = f"<https://acme.dev/u/{job_id.hex}{job_id.hex}>, <mailto:unsubscribe@acme.dev>"
    return EmailMessage(
        job_id=job_id,
        sender=Mailbox("news@acme.dev", "Acme"),
        to=Mailbox(f"user{number}@example.com", "Jane Doe"),
        subject="Your order has shipped",
        message_id=f"{job_id}@acme.dev",
        date=AT,
        text="Hello Jane,\n\nyour order has shipped.\n" * 10,
        html="<p>Hello <b>Jane</b>,</p>\n<p>your order has shipped.</p>\n" * 20,
        headers=(
            ("List-Unsubscribe", link),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
        ),
    )


def writer_us() -> float:
    """µs per mail of the MIME writer alone, the best of five rounds."""
    mails = [mail(number) for number in range(WRITES // 5)]
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for each in mails:
            write(each)
        best = min(best, (time.perf_counter() - began) / len(mails))
    return best * 1e6


@contextmanager
def server(*options: str) -> Iterator[int]:
    """A simulator in a process of its own; gives its port."""
    command = [sys.executable, "-m", "tocsin.simulators.smtp", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield msgspec.json.decode(process.stdout.readline())["port"]
        finally:
            process.terminate()


def children_cpu_s() -> float:
    """CPU seconds of the processes that have ended, their start included (0.3 s for a Python server)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def send(port: int, count: int, connections: int) -> dict[str, float]:
    """`count` mails through the connector, `connections` at one time."""
    connector = Smtp(SmtpConfig("127.0.0.1", port, security="none", pool_size=connections))
    calls = iter(
        [Call(str(each.job_id), (each.job_id,), (each,)) for each in map(mail, range(count))]
    )
    accepted = 0

    async def lane() -> None:
        nonlocal accepted
        for call in calls:
            [outcome] = await connector.deliver(call)
            accepted += isinstance(outcome, Accepted)

    began, cpu_began = time.perf_counter(), time.process_time()
    await asyncio.gather(*(lane() for _ in range(connections)))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    await connector.aclose()
    assert accepted == count, f"{accepted} of {count} accepted"
    return {"rate": round(count / seconds), "cpu_us_per_mail": round(cpu / count * 1e6, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mails", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: dict[str, object] = {"writer_us_per_mail": round(writer_us(), 1)}
    for name, options in (("sink", ["--fast"]), ("aiosmtpd", [])):
        before = children_cpu_s()
        with server(*options) as port:
            figures = uvloop.run(send(port, asked.mails, asked.connections))
        used = children_cpu_s() - before
        found[name] = {**figures, "server_cpu_us_per_mail": round(used / asked.mails * 1e6, 1)}
    if asked.json:
        print(msgspec.json.encode(found).decode())
    else:
        for name, figure in found.items():
            print(f"{name:20} {figure}")


if __name__ == "__main__":
    main()
