"""The private PostgreSQL's first moments: a program of its own that becomes the server.

Run by its path with a bare interpreter: it takes on the server's account, asks the kernel for a
signal at its parent's death, and is replaced by the program. In this order: the kernel forgets
the wish when the account changes. Python's own way, preexec_fn, runs our code in a copy of a
process whose threads are gone.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Arguments: signal number, parent's process id, uid, gid, program and its arguments."""
    number, parent, uid, gid = (int(argument) for argument in arguments[:4])
    program = arguments[4:]
    # Before the account changes: it may not be allowed to read Python's own files.
    libc = ctypes.CDLL(None)
    if (uid, gid) != (os.geteuid(), os.getegid()):
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # Elsewhere than on Linux the next start finds the server that was left behind.
    if sys.platform == "linux":
        libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit("the parent has ended already")
    try:
        os.execv(program[0], program)  # noqa: S606 - PostgreSQL's own program
    except OSError as error:
        sys.exit(f"{program[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
