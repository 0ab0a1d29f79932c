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
    [
        ((), ("999", "ok"), "job.sh:3: "),
        ((), ("998", "any"), "job.sh:2: "),
        (("--after-any", "997"), ("997", "any"), ""),
    ],
)
def test_a_job_to_wait_for_that_is_not_there_is_named_with_its_line(
    taking: Any, refuse: Any, run: Run, typed: tuple[str, ...], key: tuple[str, str], place: str
) -> None:
    """The service alone knows which there are, and says of which it speaks; the words of its sentence do not matter."""
    about = {"field": "jobs[0].after", "key": key[0], "awaited": key[1], "message": "cannot be waited for"}
    refused = refuse(422, "cannot be waited for", field="jobs[0].after", details=[about])
    taking.on("POST", "/jobs", lambda _: refused)
    said = "cannot be waited for"
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


@pytest.mark.parametrize(
    ("line", "cpu", "said"),
    [
        ("-N 4 --ntasks-per-node=8 --mem=8G", 8, "(--ntasks-per-node, --mem): ask for all of it"),
        ("-N 2-4 --gpus-per-node=1", None, "(one task, --gpus-per-node): ask for all of it"),
        ("-N 4 -n 32 --ntasks-per-node=8", 32, "--nodes=4: a job runs on one node, with all its tasks"),
        ("-N 1 --ntasks-per-node=8", 8, ""),
    ],
)
def test_several_nodes_are_one_with_the_share_of_one(
    taking: Any, run: Run, line: str, cpu: int | None, said: str
) -> None:
    """Four nodes with eight tasks each were eight cores here, and nothing said that this is a quarter."""
    write(f"#!/bin/sh\n#SBATCH {line}\n")
    assert run("submit", "job.sh").stderr.partition("\n")[2].endswith(f"{said}\n" if said else "")
    [sent] = taking.sent("POST", "/jobs")
    assert sent["jobs"][0].get("resources", {}).get("cpu") == cpu
