"""`tocsin doctor`: every finding about a deployment, with what to do."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct
from rich.text import Text

from tocsin.faces.cli import options
from tocsin.faces.cli.exits import FAILED
from tocsin.faces.cli.options import Config, Json
from tocsin.faces.cli.output import console, print_json, severity, table
from tocsin.service.dev import completed
from tocsin.service.doctor import examine
from tocsin.service.finding import Finding
from tocsin.service.symptoms import of_environment
from tocsin.settings import BadSettings, database_url
from tocsin.store.devserver_running import Running, running


class Report(Struct, frozen=True):
    """What `tocsin doctor --json` prints; healthy: nothing is critical."""

    healthy: bool
    findings: list[Finding]


def doctor(
    *,
    invariants: Annotated[
        bool,
        Parameter(negative="", help="Also prove on the data that no job is lost or doubled."),
    ] = False,
    config: Config = None,
    as_json: Json = False,
) -> int:
    """Look at settings, database, workers and lanes; say what is wrong and what to do.

    Without DATABASE_URL it looks at a `tocsin dev` that runs. Exits with 1 if anything is critical.
    """
    findings = asyncio.run(_examined(config, invariants=invariants))
    report = Report(all(finding.severity != "critical" for finding in findings), findings)
    if as_json:
        print_json(report)
    else:
        _print(findings)
    return 0 if report.healthy else FAILED


async def _examined(config: Path | None, *, invariants: bool) -> list[Finding]:
    try:
        settings = options.read(config)
    except BadSettings as error:
        return [
            Finding("critical", error.code, problem, error.remedy) for problem in error.problems
        ]
    found = list(of_environment(os.environ))
    if not settings.database.url and (devs := running(settings.data_dir)):
        url = devs[0].url
        settings = completed(settings, f"http://{settings.server.host}:{settings.server.port}")
        found.append(_which(devs))
    else:
        url = database_url(settings)
    found += [finding async for finding in examine(settings, url, invariants=invariants)]
    return found


def _which(devs: Sequence[Running]) -> Finding:
    """Which of those that run is looked at."""
    looked, *others = [str(dev.data_dir) for dev in devs]
    if not others:
        return Finding("ok", "dev", f"this is the `tocsin dev` on {looked}")
    return Finding(
        "warning",
        "several_devs",
        f"this is the `tocsin dev` on {looked}; more run on {', '.join(others)}",
        "set TOCSIN_DATA to the one to look at",
    )


def _print(findings: list[Finding]) -> None:
    shown = table("", "what", "do")
    for finding in findings:
        shown.add_row(severity(finding.severity), Text(finding.message), Text(finding.action))
    out = console()
    out.print(shown)
    counts = [sum(f.severity == word for f in findings) for word in ("critical", "warning")]
    if any(counts):
        out.print(f"\n{counts[0]} critical, {counts[1]} to look at")
    else:
        out.print("\nall is well")
