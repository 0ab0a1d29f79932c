"""Which rows of a panel a browser is sent anew, and that nothing else differs then."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from fairlead.web.frame import table
from fairlead.web.html import Html, joined, p
from fairlead.web.rows import changed_rows

ROW = re.compile(r'<tr data-k="([^"]*)">.*?</tr>', re.DOTALL)
HEADS = (("Job", ""), ("Waits", ""))
Rows = st.lists(st.tuples(st.sampled_from(["1-1", '"a"', "b<", "c&d"]), st.sampled_from(["", "x", "</tr>", "y"])))


def panel(rows: list[tuple[str, str]], words: str = "") -> Html:
    return joined(table(HEADS, [(key, [key, cell]) for key, cell in rows], "What waits"), p(words) if words else None)


@given(before=Rows, after=Rows, words=st.sampled_from(["", "more"]))
def test_what_is_shown_with_the_rows_is_what_is_to_be_shown(
    before: list[tuple[str, str]], after: list[tuple[str, str]], words: str
) -> None:
    shown, wanted = panel(before), panel(after, words)
    rows = changed_rows(shown, wanted)
    if rows is not None:
        anew = {key[1]: row for row in rows if (key := ROW.match(row))}
        assert ROW.sub(lambda row: anew.get(row[1], row[0]), shown) == wanted
        assert len(anew) == len(rows)


def test_a_row_that_differs_is_all_that_is_sent() -> None:
    rows = [(str(number), "waits") for number in range(50)]
    shown = panel(rows)
    rows[7] = ("7", "starts")
    sent = changed_rows(shown, panel(rows))
    assert sent is not None
    [row] = sent
    assert 'data-k="7"' in row
    assert "starts" in row


def test_rows_that_come_go_or_move_are_more_than_that() -> None:
    shown = panel([("1", "x"), ("2", "y")])
    assert changed_rows(shown, panel([("2", "y"), ("1", "x")])) is None
    assert changed_rows(shown, panel([("1", "x")])) is None
    assert changed_rows(shown, panel([("1", "x"), ("2", "y")], "and words below")) is None
    assert changed_rows(p("nothing"), p("something")) is None
