"""Options of `fairlead kubernetes run` that are wrong are said before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli.app import USAGE
from fairlead.cli.main import app


def status(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        app(["kubernetes", "run", *arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--queues", "none.yaml"], "there is no file none.yaml"),
        (["--config-map", "queues"], "write NAMESPACE/NAME"),
        (["--listen", "here"], "write HOST:PORT"),
        (["--log-level", "loud"], "'loud' is not one of"),
    ],
)
def test_wrong_options(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence on standard error, and the status of a wrong command line."""
    assert status(*arguments) == USAGE
    assert said in capsys.readouterr().err


def test_two_queue_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file and a ConfigMap cannot both count."""
    (tmp_path / "q.yaml").write_text("")
    assert status("--queues", str(tmp_path / "q.yaml"), "--config-map", "a/b") == USAGE
    assert "give one of them" in capsys.readouterr().err


def test_a_missing_kubeconfig(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is named."""
    assert status("--kubeconfig", str(tmp_path / "none"), "--listen", "127.0.0.1:0") == 1
    assert "none cannot be read" in capsys.readouterr().err
