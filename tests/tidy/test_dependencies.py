"""What `pyproject.toml` asks for is what the code imports: no more, and no less."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "fairlead"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

MODULES = {
    "pyyaml": "yaml", "prometheus-client": "prometheus_client", "nvidia-ml-py": "pynvml",
    "common-expression-language": "cel",
}  # fmt: skip
"""The module of a package, where it is named otherwise."""
BEHIND = {"uvicorn.protocols.http.httptools_impl": "httptools"}
"""Modules that import a package which the package they are in does not itself ask for."""
PLACES = {
    "runtime": "service",
    "local": "service",
    "service": "service",
    "tls": "service",
    "kubernetes": "k8s",
    "web": "web",
}
"""The extra that a part of the package may count on; all others have the base alone."""
ALSO = {"local": "gpu"}
"""One that it uses where it is there."""
OPTIONAL = {"uvloop"}
"""Imported only where it is there: its marker may say anything."""


def declared(lines: list[str]) -> set[str]:
    """The modules of these requirements, with those of the extras among them."""
    found: set[str] = set()
    for line in lines:
        name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0].lower()
        if name == PROJECT["name"]:
            for extra in re.findall(r"[\w-]+", line[len(name) :]):
                found |= declared(EXTRAS[extra])
        else:
            found.add(MODULES.get(name, name.replace("-", "_")))
    return found


BASE = declared(PROJECT["dependencies"])


def imported(path: Path) -> Iterator[str]:
    """The third parties that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        else:
            continue
        for name in names:
            yield from {name.split(".")[0], BEHIND.get(name, name.split(".")[0])}


@cache
def by_place() -> dict[str, set[str]]:
    """The third parties of each part of the package."""
    found: dict[str, set[str]] = {}
    for path in SOURCES.rglob("*.py"):
        part = path.relative_to(SOURCES).parts[0].removesuffix(".py")
        found.setdefault(part, set()).update(set(imported(path)) - sys.stdlib_module_names - {"fairlead"})
    return found


# Each test process collects this list: it reads names of files, no files.
PARTS = sorted({path.relative_to(SOURCES).parts[0].removesuffix(".py") for path in SOURCES.rglob("*.py")})


@pytest.mark.thorough
@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_what_it_asks_for(part: str) -> None:
    """The base, and the extra that the part belongs to."""
    extra = PLACES.get(part)
    asked = [name for each in (extra, ALSO.get(part)) if each for name in EXTRAS[each]]
    missing = by_place()[part] - BASE - declared(asked)
    assert not missing, f"{part} imports {sorted(missing)}; declare it in {extra or 'dependencies'}"


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_asks_for_nothing_that_nobody_imports(extra: str) -> None:
    """What it names itself; what it takes over from others is looked at there."""
    own = declared([line for line in EXTRAS[extra] if not line.startswith(PROJECT["name"])])
    unused = own - set().union(*by_place().values())
    assert not unused, f"nothing imports {sorted(unused)}, which the extra {extra} asks for"


def test_the_base_asks_for_nothing_that_nobody_imports() -> None:
    """Library and command are small on purpose."""
    assert not BASE - set().union(*by_place().values())


def test_what_is_imported_anyway_is_asked_for_anyway() -> None:
    """A marker leaves a package out somewhere; then the import must be one that may fail."""
    marked = [line for lines in (PROJECT["dependencies"], *EXTRAS.values()) for line in lines if ";" in line]
    assert declared(marked) <= OPTIONAL


def test_the_doctor_looks_for_what_the_service_needs() -> None:
    """All of it, and nothing else."""
    from fairlead.cli.doctor import SERVICE_PACKAGES

    assert {MODULES.get(name, name.replace("-", "_")) for name in SERVICE_PACKAGES} == declared(EXTRAS["service"])
