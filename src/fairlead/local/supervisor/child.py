"""From the fork to the command: what a process of the run is before it becomes the command.

Decides the order of the steps, in which safety lies. Never returns. Invariant: nothing of the run is executed before
the gate has been opened, and nothing of the user's choosing (directory, program) is touched with more rights than the
user has.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
import signal
import termios
import warnings  # noqa: F401  os.execvpe imports it, and by then the user may have no right to Python's own files
from collections.abc import Sequence
from typing import NoReturn

from . import cgroups, kernel, priority
from .run_files import Record

NOT_FOUND = 127
NOT_EXECUTABLE = 126
LONGEST_SENTENCE = 900
LONGEST_NAME = 300
KILL_ME_FIRST = "500"
"""Between a job and the service, the kernel shall choose the job when memory runs out."""


PIPE_S = 10
"""So long a job waits for who pipes to it."""


class Refusal(Exception):
    """The command cannot be started; carries the exit status a shell would give and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


def become_command(ends: Sequence[int | None], spec: Record, supervisor: int, gate: int, fault: int) -> NoReturn:
    """Wait at the gate, then become the command, with `ends` as standard output and standard error.

    Where there is no end it opens the file of the user.

    What goes wrong is written to `fault` as [status, sentence].
    """
    status = NOT_EXECUTABLE
    try:
        if os.read(gate, 1) != b"g":
            os._exit(0)
        _prepare(ends, spec, supervisor)
        _execute(spec["run"]["command"], spec["env"])
    except Refusal as refusal:
        status = refusal.status
        _tell(fault, status, refusal.sentence)
    except BaseException as problem:
        _tell(fault, status, f"the job could not be started: {problem}")
    finally:
        os._exit(status)


def _tell(fault: int, status: int, sentence: str) -> None:
    """Short enough for any pipe; it is the sentence that is cut, or nobody could read it."""
    said = json.dumps([status, sentence[:LONGEST_SENTENCE]], ensure_ascii=False)
    os.write(fault, said.encode(errors="backslashreplace"))


def _shown(text: str) -> str:
    """A name that somebody chose, in a sentence that is still to say what is wrong with it."""
    return repr(text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}...")


def _prepare(ends: Sequence[int | None], spec: Record, supervisor: int) -> None:
    run = spec["run"]
    os.setsid()
    try:
        cgroups.join(spec["groups"])
    except OSError as problem:
        raise Refusal(NOT_EXECUTABLE, f"the job's control group refuses it: {problem}") from None
    _take_terminal(ends) if run["terminal"] else _take_ends(ends)
    if spec["cpus"]:
        os.sched_setaffinity(0, spec["cpus"])
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write(KILL_ME_FIRST)
    priority.come_forward()
    resource.setrlimit(resource.RLIMIT_NOFILE, (run["descriptors"], resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    os.umask(run["streams"]["umask"])
    _drop_rights(run)
    _enter(run["cwd"])
    # The kernel forgets this setting when the user changes, so it comes after; and the parent may be gone by now.
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(NOT_EXECUTABLE)
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # Last, and as easily ended as the command itself: a pipe that nobody reads may keep it here for ever.
    _open_files(run["streams"], piped=run.get("piped", False))


def _take_ends(ends: Sequence[int | None]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, fd in enumerate((nothing, *(nothing if end is None else end for end in ends))):
        os.dup2(fd, number)
    for fd in {nothing, *(end for end in ends if end is not None)}:
        os.close(fd)


def _take_terminal(ends: Sequence[int | None]) -> None:
    """It is the terminal that this session is controlled by."""
    [end] = {end for end in ends if end is not None}
    for number in range(3):
        os.dup2(end, number)
    os.close(end)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _open_files(streams: Record, *, piped: bool) -> None:
    """Open what goes to and comes from files of the user, with the rights of the user alone.

    `piped`: its input comes from a `fairlead run`, which waits to write it, or is gone.
    """
    if piped:
        signal.signal(signal.SIGALRM, lambda *_: _nobody_writes(streams["stdin"]))
        signal.alarm(PIPE_S)
    how = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if streams["append"] else os.O_TRUNC)
    opened: dict[str, int] = {}
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        path = streams[name]
        if path and number and path in opened:
            os.dup2(opened[path], number)  # One file has one end, or one output would write over the other.
        elif path:
            _open_as(number, path, how if number else os.O_RDONLY)
            signal.alarm(0)
            opened |= {path: number} if number else {}


def _nobody_writes(pipe: str) -> NoReturn:
    with contextlib.suppress(OSError):
        os.unlink(pipe)
        os.rmdir(os.path.dirname(pipe))
    raise Refusal(NOT_EXECUTABLE, "the `fairlead run` whose input it was to read is gone")


def _open_as(number: int, path: str, how: int) -> None:
    what = ("read from", "write to", "write to")[number]
    try:
        fd = os.open(path, how, 0o666)
    except OSError as problem:
        advice = "; make its directory first" if number and problem.errno == errno.ENOENT else ""
        raise Refusal(
            NOT_EXECUTABLE, f"{_shown(path)}, the file to {what}, cannot be opened: {problem.strerror}{advice}"
        ) from None
    os.dup2(fd, number)
    os.close(fd)


def _drop_rights(run: Record) -> None:
    uid, gid = run["uid"], run["gid"]
    if uid is None or (os.geteuid() != 0 and uid == os.geteuid()):
        return
    try:
        os.setgroups(run["groups"])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as problem:
        raise Refusal(NOT_EXECUTABLE, f"the job cannot be run as user {uid}: {problem.strerror}") from None


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as problem:
        raise Refusal(
            NOT_EXECUTABLE, f"the working directory {_shown(directory)} cannot be entered: {problem.strerror}"
        ) from None


def _execute(command: list[str], env: dict[str, str]) -> NoReturn:
    name, shown = command[0], _shown(command[0])
    try:
        os.execvpe(name, command, env)
    except FileNotFoundError:
        if "/" not in name:
            raise Refusal(
                NOT_FOUND, f"the command {shown} was not found in PATH ({env.get('PATH', os.defpath)[:LONGEST_NAME]})"
            ) from None
        if os.path.exists(name):
            raise Refusal(NOT_FOUND, f"the interpreter named in the first line of {shown} does not exist") from None
        raise Refusal(NOT_FOUND, f"the command {shown} does not exist") from None
    except OSError as problem:
        raise Refusal(NOT_EXECUTABLE, _why_not(name, problem)) from None


def _why_not(name: str, problem: OSError) -> str:
    shown = _shown(name)
    if os.path.isdir(name):
        return f"{shown} is a directory, not a command"
    if problem.errno == errno.ENOEXEC:
        return f"{shown} is neither a program nor a script with a #! line; name its interpreter first"
    if problem.errno == errno.EACCES:
        return f"{shown} may not be executed by this user (is it marked executable?)"
    if problem.errno == errno.ENAMETOOLONG:
        return f"{shown} is longer than any program's name; for a line of shell, write: sh -c 'LINE'"
    if problem.errno == errno.E2BIG:
        return "the command's arguments and environment are too long for this machine"
    return f"{shown} could not be executed: {problem.strerror}"
