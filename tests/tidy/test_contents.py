"""What must not get into the project's files: a registry's host, a path of somebody's machine, half a merge.

The patterns are put together from pieces, so that this file does not find itself.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HOSTS = [
    "pypi" + ".org", "pythonhosted" + ".org", "proxy.golang" + ".org", "registry.npmjs" + ".org",
    "registry.yarnpkg" + ".com", "crates" + ".io", "rubygems" + ".org", "index.docker" + ".io",
]  # fmt: skip
"""Where packages come from is the choice of whoever installs."""

PATHS = ["/" + "work/", "/" + "Users/", "/" + "tmp/briefs", "file:" + "//"]
"""Beginnings of paths that exist on one machine. Within a longer path (`a/work/b`) they mean nothing."""

CONFLICTS = ["<" * 7 + " ", ">" * 7 + " "]

FOREIGN = re.compile(
    "|".join([
        *map(re.escape, HOSTS),
        *(r"(?<![\w.)}\]*-])" + re.escape(path) for path in PATHS),
        *("^" + re.escape(mark) for mark in CONFLICTS),
    ]),
    re.MULTILINE,
)  # fmt: skip

NOT_OURS = {".git", ".venv", ".fairlead", ".hypothesis", "build", "dist", "__pycache__"}


def project_files() -> list[Path]:
    """What belongs to the project: git knows; in an unpacked archive without git it is everything but what was made."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        paths = [ROOT / item for item in listed.split("\0") if item]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob("*") if not NOT_OURS & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in paths if path.is_file())


def foreign_lines(path: Path) -> list[str]:
    """`file:line: what was found` for a text file; a file that is no text has none."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    return [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}: {found.group()}"
        for found in FOREIGN.finditer(text)
    ]


def test_files_name_no_registry_and_no_machine() -> None:
    """The project can be built and read anywhere: it names no package registry and no path of a developer's machine."""
    files = project_files()
    assert Path(__file__) in files
    assert not [line for path in files for line in foreign_lines(path)]


@pytest.mark.parametrize("text", [*HOSTS, *PATHS, f"cd {PATHS[0]}here", f'"{PATHS[1]}ada"', f"a\n{CONFLICTS[0]}HEAD"])
def test_foreign_text_is_found(text: str) -> None:
    """The check sees what it claims to see."""
    assert FOREIGN.search(text)


@pytest.mark.parametrize("text", ["src" + PATHS[0], "/api/v1" + PATHS[0] + "key", "python" + ".org", "}" + PATHS[0]])
def test_other_text_is_left_alone(text: str) -> None:
    """A path within the project and an ordinary host are no findings."""
    assert not FOREIGN.search(text)


def test_the_lock_names_no_place() -> None:
    """The lock pins versions and hashes; it says nothing of where to fetch them, and pins nothing without a hash."""
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    assert not re.search(r"^\s*-", lock.replace("    --hash", ""), re.MULTILINE)
    pins = re.split(r"\n(?=\S)", "\n".join(line for line in lock.splitlines() if not line.startswith("#")))
    assert len(pins) > 30
    assert not [pin for pin in pins if "==" not in pin or "--hash=sha256:" not in pin]
