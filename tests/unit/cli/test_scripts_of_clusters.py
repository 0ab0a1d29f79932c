"""Scripts of a cluster on one machine: which are refused with their line, and what is said of the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def taking(service: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A service that takes every job; commands run in an empty directory."""
    service.on("POST", "/jobs", lambda _: {"jobs": [service.add("1")]})
    monkeypatch.chdir(tmp_path)
    return service


def write(text: str) -> None:
    Path("job.sh").write_text(text)


@pytest.mark.parametrize(
    ("typed", "key", "place"),
    [((), "999", "job.sh:3: "), ((), "998", "job.sh:2: "), (("--after-any", "997"), "997", "")],
)
def test_a_job_to_wait_for_that_is_not_there_is_named_with_its_line(
    taking: Any, refuse: Any, run: Run, typed: tuple[str, ...], key: str, place: str
) -> None:
    """The service alone knows which there are; other lines that are refused had their place."""
    said = f"there is no job '{key}' to wait for; `fairlead ls --all` shows yours"
    taking.on("POST", "/jobs", lambda _: refuse(422, f"jobs[0].after: {said}", field="jobs[0].after"))
    write("#!/bin/sh\n#SBATCH -d afterany:998\n#SBATCH -d afterok:12,afterok:999\n")
    result = run("submit", *typed, "job.sh")
    assert (result.exit_code, result.stderr) == (4, f"fairlead: {place}{said}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("job.sh",),
            "job.sh:2: byte 4 is not UTF-8; write it so, as `iconv -f LATIN1 -t UTF-8` does, or have it run as it is, "
            "without its directives: -- job.sh",
        ),
        ((), "standard input:2: byte 4 is not UTF-8; write it so, as `iconv -f LATIN1 -t UTF-8` does"),
    ],
)
def test_a_script_in_latin_1_is_refused_with_its_line(taking: Any, run: Run, words: tuple[str, ...], said: str) -> None:
    """It was told a byte of the whole file, and of what was piped in nothing to do."""
    Path("job.sh").write_bytes(content := "#!/bin/sh\n# für ann\necho\n".encode("latin-1"))
    result = run("submit", *words, stdin=content)
    assert (result.exit_code, result.stderr) == (2, f"fairlead: {said}\n")
    assert taking.sent("POST", "/jobs") == []
