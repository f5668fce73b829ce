"""The one tree of errors: each has a stable code, a status, and says what to do.

TocsinError
├── Invalid            422  the request is well formed and cannot be accepted
├── Malformed          400  the request cannot be read
├── TooLarge           413
├── Unauthenticated    401
├── Forbidden          403
├── NotFound           404
├── Conflict           409  the state of the thing forbids it
├── RateLimited        429  carries retry_after_s
└── Unavailable        503  try again; carries retry_after_s
What a provider said is never an error: see domain/outcome.py.
"""


class TocsinError(Exception):
    """Base of all errors a face shows.

    code: stable snake_case name; detail: what is wrong, naming the field; remedy: what to do now;
    field: dotted path of the offending input, if one; extra: further members of the problem document.
    No error ever contains a secret, an address or a message body.
    """

    status: int = 500

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        remedy: str = "",
        field: str | None = None,
        retry_after_s: int | None = None,
        extra: dict[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.remedy = remedy
        self.field = field
        self.retry_after_s = retry_after_s
        self.extra = extra or {}


class Invalid(TocsinError):
    status = 422


class Malformed(TocsinError):
    status = 400


class TooLarge(TocsinError):
    status = 413


class Unauthenticated(TocsinError):
    status = 401


class Forbidden(TocsinError):
    status = 403


class NotFound(TocsinError):
    status = 404


class Conflict(TocsinError):
    status = 409


class RateLimited(TocsinError):
    status = 429


class Unavailable(TocsinError):
    status = 503
