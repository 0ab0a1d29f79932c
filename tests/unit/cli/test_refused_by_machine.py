"""What any system call may meet is one sentence, also while a file of the program itself is read."""

from __future__ import annotations

import errno
import os

import pytest

from fairlead.cli.app import FAILED, Group, command, complain


def program(number: int) -> Group:
    @command("act")
    def act() -> None:
        """Act."""
        raise OSError(number, os.strerror(number), "/somewhere/module.py")

    group = Group("fairlead")
    group.add_command(act)
    return group


@pytest.mark.parametrize("number", [errno.ENOMEM, errno.EIO, errno.EMFILE, errno.ENOSPC, errno.EROFS])
def test_it_is_one_sentence(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    """It names what was refused, and what to do."""
    with pytest.raises(SystemExit) as ended:
        program(number).main(["act"], "fairlead")
    assert ended.value.code == FAILED
    said = capsys.readouterr().err
    assert said.startswith("fairlead: the machine refused: ")
    assert f"{os.strerror(number)}: '/somewhere/module.py'; free what it is short of" in said


@pytest.mark.parametrize(
    ("number", "do"),
    [(errno.ENAMETOOLONG, "give a file that can be there"), (errno.EACCES, "give a file that you may open")],
)
def test_a_file_that_was_named_wrongly_is_one_sentence(
    number: int, do: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name of thousands of digits, and a file in somebody else's closed directory, ended with a traceback."""
    with pytest.raises(SystemExit) as ended:
        program(number).main(["act"], "fairlead")
    assert ended.value.code == FAILED
    assert f"'/somewhere/module.py'; {do}, then try again" in capsys.readouterr().err


def test_a_long_value_is_shown_by_its_ends(capsys: pytest.CaptureFixture[str]) -> None:
    """An error repeated thousands of digits."""
    complain(f"--cpu: '{'9' * 5000}' is too large; the largest is {'8' * 19}", [f"jobs[0]: '{'7' * 201}'"])
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"fairlead: --cpu: '{'9' * 79}...{'9' * 39}' is too large; the largest is {'8' * 19}"
    assert len(second) < 200


def test_a_mistake_in_the_program_stays_a_traceback() -> None:
    """A file that should have been asked for is not the machine's fault."""
    with pytest.raises(FileNotFoundError):
        program(errno.ENOENT).main(["act"], "fairlead")
