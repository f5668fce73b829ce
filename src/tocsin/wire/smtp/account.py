"""An account on an SMTP server: where, as whom, how safely, and how long to wait for each step."""

from typing import Literal, TypeAlias

from msgspec import Struct

Security: TypeAlias = Literal["starttls", "tls", "none"]

CONNECT_S = 20.0
GREETING_S = 60.0
COMMAND_S = 60.0
BLOCK_S = 180.0
FINAL_DOT_S = 600.0
QUIT_S = 2.0


class Timeouts(Struct, frozen=True):
    """Seconds for each step.

    RFC 5321 §4.5.3.2 asks for 300 where GREETING_S and COMMAND_S say 60: giving up there costs one retry and
    repeats nothing, while a dead connection would hold a code for five minutes. After the final dot a mail
    that is given up may still be delivered, so there the RFC's ten minutes stand.
    """

    connect: float = CONNECT_S
    greeting: float = GREETING_S
    command: float = COMMAND_S
    block: float = BLOCK_S
    final_dot: float = FINAL_DOT_S
    quit: float = QUIT_S


class Account(Struct, frozen=True):
    """security: starttls (587) and tls (465, RFC 8314) verify the server's certificate against its host name;
    none sends everything, the password too, in the clear.
    helo: the name we give, by default the address literal of our end. ca_pem: trusted besides the system's.
    """

    host: str
    port: int
    username: str | None = None
    password: str | None = None
    security: Security = "starttls"
    helo: str | None = None
    ca_pem: bytes | None = None
    timeouts: Timeouts = Timeouts()

    def __repr__(self) -> str:
        """Without the password."""
        return f"Account({self.host!r}, {self.port}, security={self.security!r})"
