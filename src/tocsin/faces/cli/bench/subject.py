"""Subject: what the benchmarks send, and to how many at a time."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from tocsin.faces.cli.bench.ground import Ground
from tocsin.faces.cli.bench.http import post

#: Subscribers of one call, as in notifyd's published figures.
CALL: Final = 5_000
SENDER: Final = "news@bench.example"
#: Of every process: a sender, and an address for signed unsubscribe links.
ENV: Final = {
    "EMAIL_FROM": SENDER,
    "EMAIL_FROM_NAME": "Tocsin bench",
    "PUBLIC_URL": "https://notify.bench.example",
}
NEWS: Final = {
    "channel": "email",
    "topic": "news",
    "subject": "{{first_name}}, what is new in {{month}}",
    "body": (
        "Hello {{first_name}} {{last_name}},\n\nthese are the news of {{month}} for your {{data.plan}} plan.\n"
        "Exports are twice as fast, and the inbox keeps what you pinned.\n\nUntil next month,\nthe team\n"
    ),
    "body_html": (
        "<h1>Hello {{first_name}}</h1><p>These are the news of {{month}} for your <b>{{data.plan}}</b> plan."
        '</p><p>Exports are twice as fast, and the inbox keeps what you pinned.</p><p><a href="'
        'https://bench.example/news">Read more</a></p><p>Until next month,<br>the team</p>'
    ),
    "vars": {"month": "November"},
}


def people(count: int) -> list[list[str]]:
    """The ids of everybody, in calls."""
    ids = [f"user-{number}" for number in range(1, count + 1)]
    return [ids[start : start + CALL] for start in range(0, count, CALL)]


def batches(url: str, ground: Ground, count: int, at: datetime | None = None) -> list[bytes]:
    """The requests that send the news to that many; at: when they fall due, else now."""
    due = {} if at is None else {"scheduled_at": at}
    return [
        post(url, "/v1/batch", ground.key, msgspec.json.encode(NEWS | due | {"subscribers": ids}))
        for ids in people(count)
    ]


def codes(url: str, ground: Ground, count: int) -> Iterator[bytes]:
    """Single sends: a sign-in code to an address."""
    for number in range(1, count + 1):
        said = {
            "channel": "email",
            "to": f"user-{number}@people.example",
            "subject": "Your code is {{code}}",
            "body": "Your code is {{code}}. It is valid for ten minutes.",
            "vars": {"code": f"{number:06}"},
        }
        yield post(url, "/v1/send", ground.key, msgspec.json.encode(said))
