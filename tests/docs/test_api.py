"""docs/api.md names every kind of problem and every list."""

from __future__ import annotations

import re
from pathlib import Path

from fairlead.service import configuration, declarations, occupancy, settings, unknown_runs, windows
from fairlead.service.http.app import SHARED
from fairlead.service.http.errors import KINDS, TYPE, documented

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def test_every_problem_is_there_with_its_status() -> None:
    """And no other."""
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \|", TEXT, re.MULTILINE))
    assert rows == {code: str(kind.status) for code, kind in KINDS.items()}
    assert TYPE in TEXT


def test_every_refusal_in_the_program_is_of_a_kind() -> None:
    """A code that is not among them would be answered as another."""
    source = Path(__file__).resolve().parents[2] / "src" / "fairlead"
    code = re.compile(r'Refusal\(\s*"([a-z-]+)"')
    used = {found for path in source.rglob("*.py") for found in code.findall(path.read_text(encoding="utf-8"))}
    assert used - set(KINDS) == set()
    assert set(documented(404)) >= {400, 401, 403, 404, 422, 500, 503}


def test_every_list_is_there() -> None:
    """By its path: what has a cursor is a list."""
    lists = set()
    for router in [
        *SHARED,
        configuration.router,
        declarations.router,
        windows.router,
        occupancy.router,
        unknown_runs.router,
        settings.router,
    ]:
        for route in router.routes:
            asked = [route.dependant, *route.dependant.dependencies]
            names = {parameter.alias for each in asked for parameter in each.query_params}
            if "after" in names:
                lists.add(route.path.removeprefix("/api/v1"))
    table = TEXT.partition("## Lists")[2].partition("## ")[0]
    assert lists == set(re.findall(r"`(/[a-z/-]+)`(?=[^|]*\|[^|]*\|[^|]*\|$)", table, re.MULTILINE))
