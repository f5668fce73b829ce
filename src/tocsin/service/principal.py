"""Who is asking, and what that allows."""

from msgspec import Struct


class ProjectKey(Struct, frozen=True):
    """A project's own key. `number` is what every table carries; `id` what people read."""

    number: int
    id: str
    channels: tuple[str, ...]
    rate_limit_per_min: int | None


class SubscriberToken(Struct, frozen=True):
    """A signed token of one subscriber of one project. expires_at: epoch seconds."""

    project: ProjectKey
    subscriber_id: str
    expires_at: float


class Operator(Struct, frozen=True):
    """The operator's key; `writes` is false for the read-only one."""

    writes: bool
