"""Away: what to say, and what to do, when the database cannot be used at this moment."""

#: Code, what is wrong, what to do.
Words = tuple[str, str, str]

READ_ONLY = (
    "database_read_only",
    "the database takes no writes: a standby, or a primary that was demoted",
    "point DATABASE_URL at the primary",
)
SLOW = (
    "database_slow",
    "a statement ran longer than its time limit and was cancelled",
    "try again; if it lasts, look for locks and long transactions with `tocsin doctor`",
)
REFUSED = (
    "database_refused",
    "the database refused the log-in: user, password or database name",
    "correct DATABASE_URL",
)
WRONG_PASSWORD = (
    "database_refused",
    "the database refused the log-in: the user or the password is wrong",
    "correct user and password in DATABASE_URL",
)
NOT_ADMITTED = (
    "database_refused",
    "the database refused the log-in: it has no such role, or pg_hba.conf admits it not from here",
    "correct the user in DATABASE_URL, or add a line to pg_hba.conf and reload",
)
NO_DATABASE = (
    "database_refused",
    "the database that DATABASE_URL names does not exist on that server",
    "make it with CREATE DATABASE, or correct the name",
)
NO_CONNECT = (
    "database_refused",
    "the role in DATABASE_URL may not connect to that database",
    "GRANT CONNECT and CREATE ON DATABASE to the role, as the owner of the database",
)
SESSION_REFUSED = (
    "database_refused",
    "the server, or a pooler before it, opens no session with Tocsin's settings",
    "point DATABASE_URL at PostgreSQL itself, or have the pooler pass session settings on",
)
STARTING = (
    "database_starting",
    "the database is starting or stopping",
    "wait until it has started; its own log says what it does",
)
FULL = (
    "database_full",
    "the database is out of disk space or memory",
    "free disk space or memory on its machine",
)
NO_ROOM = (
    "database_full",
    "the database lets no more connections in: of the server, the database or the role",
    "raise max_connections, or the CONNECTION LIMIT of the database or role in DATABASE_URL",
)
LOST = (
    "database_lost",
    "the connection to the database was lost; whether the last statement was stored is unknown",
    "repeat the call with the same idempotency key",
)
UNREACHABLE = (
    "database_unreachable",
    "the database cannot be reached",
    "check that PostgreSQL runs and that DATABASE_URL names it",
)
BUSY = (
    "database_busy",
    "no database connection became free in time",
    "try again; if it lasts, raise database.max_connections",
)

# SQLSTATEs, or their two-character classes, that mean "not now" rather than "no".
AWAY = {
    "25006": READ_ONLY,
    "57014": SLOW,
    "25P03": LOST,
    "08": LOST,
    "28": REFUSED,
    "3D": REFUSED,
    "53300": NO_ROOM,
    "53": FULL,
    "57": LOST,
    "58": LOST,
}
# While a session is being opened, nothing of ours has been said yet.
AWAY_AT_CONNECT = {
    "28P01": WRONG_PASSWORD,
    "28000": NOT_ADMITTED,
    "3D000": NO_DATABASE,
    "42501": NO_CONNECT,
    "08P01": SESSION_REFUSED,
    "57": STARTING,
}
