"""Memory: what a process loaded at its start is not searched for garbage again and again."""

import gc

#: Objects made before the youngest are searched; Python's own 700 has a busy loop search all the time.
YOUNG = 10_000
OLDER = 20
OLDEST = 50


def settle() -> None:
    """Called once everything runs. A full search over all that the frameworks loaded took 60 ms, in which nobody
    was answered: with 64 clients it was the slowest hundredth of all sends (`tocsin bench send`).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, OLDER, OLDEST)
