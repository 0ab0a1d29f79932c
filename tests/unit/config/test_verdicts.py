"""Recorded verdicts of Apache YuniKorn 1.8.0 on queue files, good and bad: the reader comes to the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from unit.config.yunikorn_words import ROWS as WORDS
from unit.config.yunikorn_words import says_it_too

from fairlead.config import ConfigurationError, load_text

ROWS = [
    json.loads(line) for line in (Path(__file__).parent / "data" / "verdicts.jsonl").read_text("utf-8").splitlines()
]


def test_the_recording_holds_both_verdicts() -> None:
    """The comparison below cannot pass for want of cases."""
    refused = sum(row["refused"] is not None for row in ROWS)
    assert refused >= 100
    assert len(ROWS) - refused >= 80


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}" for i in range(len(ROWS))])
def test_a_file_is_refused_for_the_same_reason_or_accepted_alike(row: dict[str, str | None]) -> None:
    """The same verdict, and among all problems found is the one that YuniKorn names."""
    text, refused = str(row["config"]), row["refused"]
    if refused is None:
        assert load_text(text, keep_broken_rules=True).partitions
        return
    with pytest.raises(ConfigurationError) as caught:
        load_text(text, keep_broken_rules=True)
    assert says_it_too(caught.value.errors, refused), (refused, caught.value.errors)


def test_every_row_of_words_is_needed() -> None:
    """None is there that was never recorded."""
    refusals = [str(row["refused"]).strip() for row in ROWS if row["refused"]]
    met = {next(theirs for theirs, _ in WORDS if re.search(theirs, refused)) for refused in refusals}
    assert met == {theirs for theirs, _ in WORDS}
