"""A file of a user, opened for reading with the rights of that user.

Decides nothing. A service that is root must not read for a user what the user may not read, whatever links lead there;
so a short-lived process becomes that user, opens the file and hands it over. Invariant: what is returned was opened
with no more rights than the user has.
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys

PATIENCE_S = 10.0
_HOW = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_as(uid: int, gids: tuple[int, ...], path: str) -> int:
    """The descriptor of the file; the first of the groups is the primary one.

    Raises OSError where the user may not read it, it is not there, or its disk does not answer.
    """
    if os.geteuid() != 0 or uid == 0:
        return os.open(path, _HOW)
    here, there = socket.socketpair()
    with here, there:
        here.settimeout(PATIENCE_S)
        try:
            subprocess.run(
                [sys.executable, "-I", "-S", __file__, path, str(uid), *map(str, gids)],
                stdin=there.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"LC_ALL": "C.UTF-8"},
                cwd="/",
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), path) from None
        there.close()
        said, found, _, _ = socket.recv_fds(here, 64, 1)
    if found:
        return found[0]
    number = int(said or b"5")
    raise OSError(number, os.strerror(number), path)


def _hand_over(path: str, uid: int, gids: list[int]) -> None:
    with socket.socket(fileno=0) as asking:
        try:
            os.setgroups(gids)
            os.setresgid(gids[0], gids[0], gids[0])
            os.setresuid(uid, uid, uid)
            found = os.open(path, _HOW)
        except OSError as problem:
            asking.sendall(str(problem.errno).encode())
        else:
            socket.send_fds(asking, [b"0"], [found])


if __name__ == "__main__":
    _hand_over(sys.argv[1], int(sys.argv[2]), [int(each) for each in sys.argv[3:]])
