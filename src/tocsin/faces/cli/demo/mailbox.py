"""Mailbox: what the SMTP server has accepted so far, read from its journal as it grows."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from tocsin.faces.cli.demo.missed import Missed
from tocsin.simulators.smtp_mail import Mail

#: Between two looks at the journal, and the error of every latency that is told.
LOOK_S: Final = 0.001
PROGRESS_LOOK_S: Final = 0.05
#: Without one more mail for this long, no more is coming.
STALL_S: Final = 45.0

_decode = msgspec.json.Decoder(Mail).decode


class Mailbox:
    """Grows with the journal; `mails` in the order of acceptance."""

    def __init__(self, journal: Path) -> None:
        self.mails: list[Mail] = []
        self._journal = journal
        self._offset = 0

    def look(self) -> int:
        """Read what was written since; how many mails there are."""
        if self._journal.exists():
            with self._journal.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._offset += len(whole)
            self.mails += map(_decode, whole.splitlines())
        return len(self.mails)

    async def until(
        self,
        count: int,
        *,
        look_s: float = LOOK_S,
        tell: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Return once there are that many; Missed when they stop coming. `tell` hears the number."""
        loop = asyncio.get_running_loop()
        seen, moved_at = self.look(), loop.time()
        tell(seen)
        while seen < count:
            await asyncio.sleep(look_s)
            now_there = self.look()
            if now_there > seen:
                seen, moved_at = now_there, loop.time()
                tell(seen)
            elif loop.time() - moved_at > STALL_S:
                missing = count - seen
                raise Missed(f"{missing} of {count} mails have not arrived, and no more come")
