"""What a failed statement means to the house: never its SQL, never its values.

Unavailable (domain)     the database is away, busy, read-only or slow: try again later
StatementFailed     500  the database answered no
├── UniqueViolation      23505, `constraint` names the index
├── ForeignKeyViolation  23503
├── LockTimeout          55P03: NOWAIT or lock_timeout
├── Contended            40001, 40P01: run the transaction again
├── RightMissing         42501: the role may not do what Tocsin does
└── SchemaMissing        3F000, 42P01: what a migration makes is not there, or not to be seen
"""

import re

from tocsin.domain.errors import TocsinError, Unavailable
from tocsin.store import away

RETRY_AFTER_S = 1
OLDEST_POSTGRES = 15

# After these no connection of the pool is worth keeping: the server goes down or was demoted.
STALE_STATES = frozenset({"25006", "57P01", "57P02", "57P03"})

_DEFECT = "this is a defect of Tocsin or of its database: report this line as it is"
_RIGHT_ON_DATABASE = re.compile(r"for database (\S+)$")


class StatementFailed(TocsinError):
    """The database refused a statement. Whatever transaction it was in has not been committed."""

    told = "statement_failed"

    def __init__(
        self, query: str, sqlstate: str, constraint: str | None = None, said: str = ""
    ) -> None:
        named = f" (constraint {constraint})" if constraint else ""
        saying = f": {said}" if said else ""
        super().__init__(
            self.told,
            f"statement '{query}' failed with SQLSTATE {sqlstate}{named}{saying}",
            remedy=self.remedy_for(said),
        )
        self.query = query
        self.sqlstate = sqlstate
        self.constraint = constraint

    @staticmethod
    def remedy_for(said: str) -> str:  # noqa: ARG004 - what it was about decides elsewhere
        """What to do about it; `said` is PostgreSQL's own sentence, empty where it quotes values."""
        return _DEFECT


class UniqueViolation(StatementFailed):
    """A row with this key exists."""


class ForeignKeyViolation(StatementFailed):
    """The row that is referred to does not exist, or is still referred to."""


class LockTimeout(StatementFailed):
    """A lock was not to be had at once, or within lock_timeout."""


class Contended(StatementFailed):
    """Deadlock or serialization failure: the same transaction may pass when run again."""


class RightMissing(StatementFailed):
    """The role of DATABASE_URL may not do this."""

    told = "database_right_missing"

    @staticmethod
    def remedy_for(said: str) -> str:
        """Only who may make a schema can start; only who owns the tables can make partitions."""
        if found := _RIGHT_ON_DATABASE.search(said):
            return (
                f"let the role in DATABASE_URL make Tocsin's schema: GRANT CREATE ON DATABASE {found[1]} "
                "TO that role, as the owner of the database"
            )
        return (
            "use the role that owns the schema tocsin in DATABASE_URL, or make yours a member of "
            "it: GRANT owner TO role; \\dn in psql shows the owner"
        )


class SchemaMissing(StatementFailed):
    """Not migrated, another database, or a role that does not see the schema."""

    told = "database_incomplete"

    @staticmethod
    def remedy_for(said: str) -> str:  # noqa: ARG004 - as above
        """42P01 is also what PostgreSQL says of a schema whose USAGE the role lacks."""
        return (
            "run `tocsin migrate` with this DATABASE_URL; if nothing is to be done, the role in it "
            "lacks USAGE on the schema tocsin, or a table was dropped: restore a backup"
        )


_FAILED: dict[str, type[StatementFailed]] = {
    "23505": UniqueViolation,
    "23503": ForeignKeyViolation,
    "55P03": LockTimeout,
    "40001": Contended,
    "40P01": Contended,
    "42501": RightMissing,
    "3F000": SchemaMissing,
    "42P01": SchemaMissing,
}


def _unavailable(words: away.Words) -> Unavailable:
    code, detail, remedy = words
    return Unavailable(code, detail, remedy=remedy, retry_after_s=RETRY_AFTER_S)


def answered(query: str, sqlstate: str, constraint: str | None, message: str = "") -> TocsinError:
    """The error for a statement that the server answered with a SQLSTATE.

    Its message is kept for classes 42 and 3F only (syntax, unknown names, missing rights): they
    quote names of the schema; other classes quote values.
    """
    words = away.AWAY.get(sqlstate) or away.AWAY.get(sqlstate[:2])
    if words is not None:
        return _unavailable(words)
    said = message if sqlstate.startswith(("42", "3F")) else ""
    return _FAILED.get(sqlstate, StatementFailed)(query, sqlstate, constraint, said)


def unopened(sqlstate: str) -> Unavailable:
    """The error for a session that the server answered with a SQLSTATE instead of opening it."""
    for table in (away.AWAY_AT_CONNECT, away.AWAY):
        words = table.get(sqlstate) or table.get(sqlstate[:2])
        if words is not None:
            return _unavailable(words if words is not away.LOST else away.UNREACHABLE)
    return _unavailable(away.UNREACHABLE)


def lost() -> Unavailable:
    """The connection broke before the answer."""
    return _unavailable(away.LOST)


def slow() -> Unavailable:
    """No answer within the time limit."""
    return _unavailable(away.SLOW)


def unreachable() -> Unavailable:
    """No connection could be made."""
    return _unavailable(away.UNREACHABLE)


def busy() -> Unavailable:
    """Every connection of the pool stayed in use."""
    return _unavailable(away.BUSY)


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
