"""Send windows as they come in: checked here, evaluated when the send fires."""

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tocsin.domain.errors import Invalid
from tocsin.domain.request import Window

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


def check_window(window: Window | bool | None) -> None:  # noqa: FBT001 - the field is
    """Refuse a window that could never be evaluated. False switches the project's off."""
    if window is None or window is False:
        return
    if window is True:
        raise _refused("send_window", "send_window is true", "give an object, or false for none")
    for name in ("start", "end"):
        if not _CLOCK.fullmatch(getattr(window, name)):
            raise _refused(
                f"send_window.{name}",
                f"send_window.{name} is not a time of day",
                "write it as HH:MM, 00:00 to 23:59",
            )
    if window.start == window.end:
        raise _refused("send_window.end", "send_window is empty", "let it end after it starts")
    if window.tz is not None and not is_zone(window.tz):
        raise _refused(
            "send_window.tz", "send_window.tz is not a time zone", "use an IANA name: Europe/Paris"
        )
    days = window.days
    if days is not None and (not days or any(not 1 <= day <= 7 for day in days)):
        raise _refused(
            "send_window.days", "send_window.days has a day that is none", "use 1 (Monday) to 7"
        )
    if window.applies_to not in (None, "marketing", "all"):
        raise _refused(
            "send_window.applies_to", "send_window.applies_to is unknown", "use marketing or all"
        )


def is_zone(name: str) -> bool:
    """Whether this is an IANA time zone."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _refused(field: str, detail: str, remedy: str) -> Invalid:
    return Invalid("invalid_send_window", detail, remedy=remedy, field=field)
