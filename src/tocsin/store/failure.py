"""What a failed statement means to the house: never its SQL, never its values.

Unavailable (domain)     the database is away, busy, read-only or slow: try again later
StatementFailed     500  the database answered no
├── UniqueViolation      23505, `constraint` names the index
├── ForeignKeyViolation  23503
├── LockTimeout          55P03: NOWAIT or lock_timeout
└── Contended            40001, 40P01: run the transaction again
"""

from tocsin.domain.errors import TocsinError, Unavailable

RETRY_AFTER_S = 1
OLDEST_POSTGRES = 15

# After these no connection of the pool is worth keeping: the server goes down or was demoted.
STALE_STATES = frozenset({"25006", "57P01", "57P02", "57P03"})


class StatementFailed(TocsinError):
    """The database refused a statement. Whatever transaction it was in has not been committed."""

    def __init__(
        self, query: str, sqlstate: str, constraint: str | None = None, said: str = ""
    ) -> None:
        named = f" (constraint {constraint})" if constraint else ""
        saying = f": {said}" if said else ""
        super().__init__(
            "statement_failed",
            f"statement '{query}' failed with SQLSTATE {sqlstate}{named}{saying}",
            remedy="this is a defect of Tocsin or of its database: report this line as it is",
        )
        self.query = query
        self.sqlstate = sqlstate
        self.constraint = constraint


class UniqueViolation(StatementFailed):
    """A row with this key exists."""


class ForeignKeyViolation(StatementFailed):
    """The row that is referred to does not exist, or is still referred to."""


class LockTimeout(StatementFailed):
    """A lock was not to be had at once, or within lock_timeout."""


class Contended(StatementFailed):
    """Deadlock or serialization failure: the same transaction may pass when run again."""


_FAILED: dict[str, type[StatementFailed]] = {
    "23505": UniqueViolation,
    "23503": ForeignKeyViolation,
    "55P03": LockTimeout,
    "40001": Contended,
    "40P01": Contended,
}

_READ_ONLY = (
    "database_read_only",
    "the database takes no writes: a standby, or a primary that was demoted",
    "point DATABASE_URL at the primary",
)
_SLOW = (
    "database_slow",
    "a statement ran longer than its time limit and was cancelled",
    "try again; if it lasts, look for locks and long transactions with `tocsin doctor`",
)
_REFUSED = (
    "database_refused",
    "the database refused the log-in: user, password or database name",
    "correct DATABASE_URL",
)
_FULL = (
    "database_full",
    "the database is out of disk space, memory or connections",
    "free disk space, or raise PostgreSQL's max_connections",
)
_LOST = (
    "database_lost",
    "the connection to the database was lost; whether the last statement was stored is unknown",
    "repeat the call with the same idempotency key",
)
_UNREACHABLE = (
    "database_unreachable",
    "the database cannot be reached",
    "check that PostgreSQL runs and that DATABASE_URL names it",
)
_BUSY = (
    "database_busy",
    "no database connection became free in time",
    "try again; if it lasts, raise database.max_connections",
)

# SQLSTATEs, or their two-character classes, that mean "not now" rather than "no".
_AWAY = {
    "25006": _READ_ONLY,
    "57014": _SLOW,
    "25P03": _LOST,
    "08": _LOST,
    "28": _REFUSED,
    "3D": _REFUSED,
    "53": _FULL,
    "57": _LOST,
    "58": _LOST,
}


def _unavailable(words: tuple[str, str, str]) -> Unavailable:
    code, detail, remedy = words
    return Unavailable(code, detail, remedy=remedy, retry_after_s=RETRY_AFTER_S)


def answered(query: str, sqlstate: str, constraint: str | None, message: str = "") -> TocsinError:
    """The error for a statement that the server answered with a SQLSTATE.

    Its message is kept for class 42 only (syntax, unknown names, missing rights): that quotes
    names of the schema; other classes quote values.
    """
    away = _AWAY.get(sqlstate) or _AWAY.get(sqlstate[:2])
    if away is not None:
        return _unavailable(away)
    said = message if sqlstate.startswith("42") else ""
    return _FAILED.get(sqlstate, StatementFailed)(query, sqlstate, constraint, said)


def lost() -> Unavailable:
    """The connection broke before the answer."""
    return _unavailable(_LOST)


def slow() -> Unavailable:
    """No answer within the time limit."""
    return _unavailable(_SLOW)


def unreachable() -> Unavailable:
    """No connection could be made."""
    return _unavailable(_UNREACHABLE)


def busy() -> Unavailable:
    """Every connection of the pool stayed in use."""
    return _unavailable(_BUSY)


def misused(query: str, argument: str | None) -> StatementFailed:
    """The driver cannot send these arguments; `argument` is like `$3`."""
    what = f"argument {argument}" if argument else "the number of arguments"
    return StatementFailed(query, "22000", said=f"{what} does not fit")


def unreadable() -> Unavailable:
    """DATABASE_URL is no address of a database."""
    return Unavailable(
        "database_url_invalid",
        "DATABASE_URL cannot be read as the address of a database",
        remedy="write it as postgresql://user:password@host:5432/name",
    )


def refuse_old(version: int) -> None:
    """Raise for a server whose major version is not supported."""
    if version < OLDEST_POSTGRES:
        raise Unavailable(
            "database_too_old",
            f"the database is PostgreSQL {version}",
            remedy=f"Tocsin needs PostgreSQL {OLDEST_POSTGRES} or newer",
        )
