"""What a provider's answer means: exactly one value per job and attempt, never an exception."""

from msgspec import Struct


class Accepted(Struct, frozen=True, tag=True):
    """The provider owns the message now."""

    provider_message_id: str | None = None


class Throttled(Struct, frozen=True, tag=True):
    """A burst limit: the lane (or only this destination) rests; it is no attempt (law 7)."""

    retry_after_s: float
    destination_only: bool = False


class QuotaSpent(Struct, frozen=True, tag=True):
    """A daily or monthly budget is gone; waiting seconds does not help."""

    code: str
    retry_after_s: float | None = None


class Transient(Struct, frozen=True, tag=True):
    """The provider failed and did not take the message; try again later.

    down: it could not be reached at all, so the lane rests and no job pays for it.
    """

    code: str
    detail: str = ""
    down: bool = False


class RecipientPermanent(Struct, frozen=True, tag=True):
    """This recipient cannot be reached, ever. `suppress`: the address itself is dead."""

    code: str
    detail: str = ""
    suppress: bool = False


class RecipientTemporary(Struct, frozen=True, tag=True):
    """This recipient cannot be reached now (mailbox full, greylisted)."""

    code: str
    detail: str = ""


class ContentRejected(Struct, frozen=True, tag=True):
    """What the message says is refused; the same message will never pass."""

    code: str
    detail: str = ""


class Misconfigured(Struct, frozen=True, tag=True):
    """Our account, key or sender is refused: the lane stops, no job fails for it."""

    code: str
    detail: str = ""


class Unsupported(Struct, frozen=True, tag=True):
    """The provider cannot express what the message asks for."""

    code: str
    detail: str = ""


class Suppressed(Struct, frozen=True, tag=True):
    """Consent forbids it: suppression, preference, opt-out. Nothing was sent."""

    code: str


class Expired(Struct, frozen=True, tag=True):
    """The message is worth nothing any more; nothing was sent."""

    code: str = "expired"


class Cancelled(Struct, frozen=True, tag=True):
    """Cancelled before any byte left."""

    code: str = "cancelled"


class Unknown(Struct, frozen=True, tag=True):
    """Bytes left and no answer came (law 6): neither sent nor failed."""

    code: str
    detail: str = ""


Outcome = (
    Accepted
    | Throttled
    | QuotaSpent
    | Transient
    | RecipientPermanent
    | RecipientTemporary
    | ContentRejected
    | Misconfigured
    | Unsupported
    | Suppressed
    | Expired
    | Cancelled
    | Unknown
)
