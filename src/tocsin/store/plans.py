"""The settings of a database session: limits for all, pinned plans for the queue's."""

from msgspec import Struct

SCHEMA = "tocsin"
STATEMENT_TIMEOUT_S = 30.0

SESSION_SETTINGS = {
    "search_path": f"{SCHEMA},public",
    "timezone": "UTC",
    "statement_timeout": str(int(STATEMENT_TIMEOUT_S * 1000)),
    "idle_in_transaction_session_timeout": str(int(STATEMENT_TIMEOUT_S * 1000)),
    # So that the server notices a client that vanished, and with it a listener that would
    # keep the notification queue from being truncated.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}

# The queue's tables are empty when statistics are taken. Every plan but the index walk that its
# statements were written for then costs seconds at 300,000 rows; this leaves the planner no other.
PINNED_PLANS = {
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


class Sizes(Struct, frozen=True):
    """How many connections each pool may hold."""

    general: int = 10
    queue: int = 6
