"""A finding: one thing that a doctor has to say about a deployment, and what to do."""

from datetime import timedelta
from typing import Literal

from msgspec import Struct

Severity = Literal["ok", "warning", "critical"]


class Finding(Struct, frozen=True):
    """code: stable; action: what to do now, empty when all is well."""

    severity: Severity
    code: str
    message: str
    action: str = ""


def span(time: timedelta) -> str:
    """A length of time in the unit that people would choose."""
    seconds = int(time.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7_200:
        return f"{seconds // 60} min"
    return f"{seconds // 3_600} h" if seconds < 172_800 else f"{seconds // 86_400} days"
