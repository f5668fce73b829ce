"""App: what every service function takes first, built once in wiring."""

from dataclasses import dataclass

from tocsin.domain.clock import Clock
from tocsin.engine.intake import Intake
from tocsin.settings import Settings
from tocsin.store.notifier import Notifier
from tocsin.store.pool import Database


@dataclass(frozen=True, slots=True)
class App:
    """lanes: the lane a new job of each configured channel enters, by channel."""

    db: Database
    clock: Clock
    notifier: Notifier
    settings: Settings
    intake: Intake
    lanes: dict[str, int]
    signing_secret: bytes
    version: str
