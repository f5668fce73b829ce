"""Wake-up: from a send into an idle system to the provider's call, API and worker being two processes."""

import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from tocsin.faces.cli.bench.children import serve, worker
from tocsin.faces.cli.bench.ground import Ground, Place
from tocsin.faces.cli.bench.http import ask, lines, post
from tocsin.faces.cli.bench.notify_floor import round_trips
from tocsin.faces.cli.bench.process import peak_rss_mb, rss_mb
from tocsin.faces.cli.bench.provider import provider
from tocsin.faces.cli.bench.report import Figures, Rss, quantile, spread
from tocsin.faces.cli.bench.subject import ENV
from tocsin.faces.cli.bench.trips import Arrivals, bounded, spaced

#: Trips that do not count: the first connection to the provider, the first plans.
WARM_UP: Final = 3


class Options(Struct, frozen=True):
    jobs: int


async def measure(place: Place, options: Options, say: Callable[[str], None]) -> Figures:
    """The product, then its floor, with the same pauses."""
    arrivals = Arrivals()
    say(f"{options.jobs} sends, one at a time")
    async with place.ground(0) as ground, provider(arrivals) as base_url:
        env = ENV | {
            "EMAIL_PROVIDER": "resend",
            "RESEND_API_KEY": "re_bench",
            "RESEND_BASE_URL": base_url,
            "EMAIL_RATE_PER_SEC": "0",
        }
        async with (
            worker(ground, place.folder, env) as child,
            serve(ground, place.folder, env) as api,
        ):
            idle = rss_mb(child.pid)
            began = time.perf_counter()
            took_ms = await _trips(ground, api.url, arrivals, options.jobs)
            seconds = time.perf_counter() - began
            rss = Rss(idle, peak_rss_mb(child.pid))
    say("floor: one commit and a bare NOTIFY")
    async with place.ground(0) as ground:
        floor_ms = await round_trips(ground, options.jobs, inside=False)
    return Figures(
        jobs=options.jobs,
        seconds=seconds,
        rate=1e3 / quantile(took_ms, 0.5),
        floor_rate=1e3 / quantile(floor_ms, 0.5),
        p50_ms=quantile(took_ms, 0.5),
        p99_ms=quantile(took_ms, 0.99),
        rss=rss,
        notes=(
            ("latency", "from the request's first byte to the first byte at the provider"),
            ("rate", "trips one after the other in a second, 1 / p50"),
            ("floor", f"{spread(floor_ms)}: one commit, then NOTIFY heard by a LISTEN"),
        ),
    )


async def _trips(ground: Ground, url: str, arrivals: Arrivals, count: int) -> list[float]:
    async with lines(url, 1) as [line]:

        async def trip(number: int) -> float:
            to = f"trip-{number}@people.example"
            said = {"channel": "email", "to": to, "subject": "Your code", "body": f"{number:06}"}
            sent = await ask(line, post(url, "/v1/send", ground.key, msgspec.json.encode(said)))
            async with bounded("the provider's call"):
                return await arrivals.of(to) - sent.began

        return (await spaced(WARM_UP + count, trip))[WARM_UP:]
