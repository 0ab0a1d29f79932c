"""What any system call may meet is one sentence, also while a file of the program itself is read."""

from __future__ import annotations

import errno
import os

import pytest

from fairlead.cli.app import FAILED, Group, command


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


def test_a_mistake_in_the_program_stays_a_traceback() -> None:
    """A file that should have been asked for is not the machine's fault."""
    with pytest.raises(FileNotFoundError):
        program(errno.ENOENT).main(["act"], "fairlead")
