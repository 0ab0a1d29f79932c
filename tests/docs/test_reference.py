"""docs/reference.md names every key, property, reason and decision that there is, and says what each means."""

from __future__ import annotations

import pytest
from reference_tables import PAGE, TO_DO, shown, tables, updated

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_has_every_table() -> None:
    """None is missing, none stands twice."""
    assert sorted(shown(TEXT)) == sorted(tables())


def test_the_page_says_what_the_code_says() -> None:
    """Otherwise: `PYTHONPATH=src python tests/reference_tables.py`, and say what the new rows mean."""
    assert updated(TEXT) == TEXT


def test_every_row_says_what_it_means() -> None:
    """No cell is empty or still to be written."""
    rows = [line for line in TEXT.splitlines() if line.startswith("| `")]
    assert len(rows) > 80
    assert not [row for row in rows if TO_DO in row or "|  |" in row]


def test_a_missing_row_is_found() -> None:
    """Whatever row is taken out or added by hand, the page is no longer what the code says."""
    rows = [line for line in TEXT.splitlines(keepends=True) if line.startswith("| `")]
    assert all(updated(TEXT.replace(row, "", 1)) != TEXT.replace(row, "", 1) for row in rows[:: len(rows) // 10])
    extra = TEXT.replace(rows[0], rows[0] + "| `made-up` | text | nothing |\n", 1)
    assert updated(extra) == TEXT


def test_what_is_written_by_hand_is_kept() -> None:
    """Bringing the page up to date changes the code's columns only."""
    row = next(line for line in TEXT.splitlines() if line.startswith("| `priority.offset`"))
    changed = row.replace(row.split("|")[-2], " by hand ")
    assert changed in updated(TEXT.replace(row, changed))


def test_an_unknown_table_is_an_error() -> None:
    """A name that the code does not know is a slip."""
    with pytest.raises(KeyError):
        updated("<!-- table nothing -->\n<!-- end -->")
