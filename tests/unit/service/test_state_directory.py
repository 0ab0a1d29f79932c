"""Whose state a service believes: its own and root's, where nobody else may write."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from fairlead.service.serve import ServeOptions, serve
from fairlead.service.state_directory import StateError, state_directory


def test_it_is_made_for_the_service_alone(tmp_path: Path) -> None:
    """Users pass through that of root, to their own output."""
    made = state_directory(tmp_path / "a" / "b")
    assert made.stat().st_mode & 0o777 == (0o711 if os.geteuid() == 0 else 0o700)
    assert state_directory(made) == made


@pytest.mark.parametrize("mode", [0o777, 0o772, 0o720])
def test_one_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    """A file of tokens that somebody put in would let them in as root (F10)."""
    tmp_path.chmod(mode)
    with pytest.raises(StateError, match=f"others may write .*chmod go-w {tmp_path}"):
        state_directory(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to others")
def test_that_of_another_user_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything in it is read, and nothing of it is changed."""
    planted = tmp_path / "state"
    planted.mkdir(mode=0o700)
    (planted / "tokens.json").write_text("planted")
    os.chown(planted, 1, 1)
    assert serve(ServeOptions(state_dir=planted, socket=tmp_path / "s", port=None, handle_signals=False)) == 1
    said = capsys.readouterr().err
    assert f"the state directory {planted} belongs to {pwd.getpwuid(1).pw_name}, who could have put in anything" in said
    assert f"chown -R root {planted}" in said
    assert [path.name for path in planted.iterdir()] == ["tokens.json"]
