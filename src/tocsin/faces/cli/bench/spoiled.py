"""A run whose figures would mean nothing."""

from tocsin.domain.errors import TocsinError


class Spoiled(TocsinError):
    """The benchmark fails with this and prints no figure."""

    def __init__(
        self, detail: str, *, remedy: str = "run it again when nothing else keeps the machine busy"
    ) -> None:
        super().__init__("bench_spoiled", detail, remedy=remedy)
