"""What a job takes over from where it is submitted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    """Sets that of this process, until the test is over."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.fixture
def sent(service: Any, run: Any) -> Callable[..., list[Any]]:
    """What a command submits."""
    service.on("POST", "/jobs", lambda request: {"jobs": [service.add("1") for _ in request.body["jobs"]]})

    def send(*words: str) -> list[Any]:
        result = run("submit", *words)
        assert result.exit_code == 0, result.stderr
        return list(service.sent("POST", "/jobs")[-1]["jobs"])

    return send


def test_a_job_hides_its_files_as_its_user_does(umask: Any, sent: Any) -> None:
    """The usual umask is not sent: a service that does not know the field takes such jobs."""
    assert "umask" not in sent("--", "true")[0]
    umask(0o027)
    assert sent("--", "true")[0]["umask"] == "027"
    assert umask(0o027) == 0o027


def test_what_is_said_holds(umask: Any, sent: Any, tmp_path: Path) -> None:
    """By an option, by a line of a script, and by a field of a file."""
    umask(0o077)
    assert sent("--umask", "002", "--", "true")[0]["umask"] == "002"
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#FAIRLEAD --umask 027\ntrue\n")
    assert sent(str(tmp_path / "job.sh"))[0]["umask"] == "027"
    (tmp_path / "jobs.yaml").write_text("- {command: [a], umask: '007'}\n- {command: [b]}\n")
    assert [job["umask"] for job in sent("--file", str(tmp_path / "jobs.yaml"))] == ["007", "077"]


@pytest.mark.parametrize("wrong", ["77", "088", "1777", "u=rwx", ""])
def test_what_is_no_umask_is_refused(service: Any, run: Any, wrong: str) -> None:
    result = run("submit", "--umask", wrong, "--", "true")
    assert (result.exit_code, service.sent("POST", "/jobs")) == (2, [])
    assert "three octal digits" in result.stderr


def test_a_number_of_yaml_is_refused(service: Any, run: Any, tmp_path: Path) -> None:
    """It is not known whether 77 is meant in octal digits; 077 is a text, as it is written."""
    (tmp_path / "jobs.yaml").write_text("- {command: [a], umask: 77}\n")
    result = run("submit", "--file", str(tmp_path / "jobs.yaml"))
    assert (result.exit_code, service.sent("POST", "/jobs")) == (2, [])
    assert "in YAML in quotes" in result.stderr


def test_a_directory_for_output_that_is_not_there_is_said(service: Any, run: Any, tmp_path: Path) -> None:
    """The job is taken all the same: something may make it first. That it failed was said when its turn came."""
    service.on("POST", "/jobs", lambda request: {"jobs": [service.add("1")]})
    (tmp_path / "there").mkdir()
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH -o logs/%j.out -e there/%j.err\ntrue\n")
    result = run("submit", "--cwd", str(tmp_path), str(tmp_path / "job.sh"))
    said = "--output: there is no directory logs here now; where it is not there when the job begins, the job fails"
    assert (result.exit_code, result.stderr) == (0, f"fairlead: {said}\n")
    for word in ("out.txt", "%x/out.txt", "/out.txt", "there/out.txt"):
        assert run("submit", "--cwd", str(tmp_path), "-o", word, "--", "true").stderr == ""
