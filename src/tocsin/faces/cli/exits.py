"""Exit codes of every command."""

from typing import Final

#: It failed, or found something that is critical.
FAILED: Final = 1
#: It was called, or is configured, in a way it cannot be.
MISUSED: Final = 2
INTERRUPTED: Final = 130
