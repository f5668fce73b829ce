"""What the demo expected and did not see."""

from tocsin.domain.errors import TocsinError


class Missed(TocsinError):
    """The demo fails with this."""

    def __init__(self, detail: str, *, remedy: str = "read the log that is shown above") -> None:
        super().__init__("demo_failed", detail, remedy=remedy)
