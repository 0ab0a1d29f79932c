"""Why work was stopped, in words."""

from __future__ import annotations

import pytest

from fairlead.wire.stopped import WORDS, in_brackets, why_stopped


@pytest.mark.parametrize("rule", WORDS)
def test_each_rule_is_said_in_words_that_do_not_need_its_name(rule: str) -> None:
    said = why_stopped(rule)
    assert said
    assert "rule" not in said
    assert "strictly" not in said
    assert "{" not in said


def test_who_tells_it_is_this_one_in_its_own_story() -> None:
    assert why_stopped("priority") == "that one has a higher priority"
    assert in_brackets("priority", winner="this one") == " (this one has a higher priority)"


def test_a_rule_without_words_is_named_and_none_says_nothing() -> None:
    assert why_stopped("new{x}") == "by the rule new{x}"
    assert (why_stopped(""), in_brackets("")) == ("", "")
