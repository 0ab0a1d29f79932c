"""Edits of a queue file's text: the value goes where it belongs, and everything else stays as it was written."""

from __future__ import annotations

import pytest

from fairlead.config import edit, load_text

TEXT = """\
# the lab
partitions:
  - name: default
    queues:
      - name: root   # the top
        submitacl: "*"
        queues:
          - name: batch
            resources:
              max: {vcore: 26}
          - name: web   # no limit yet
          - name: late
            properties:
              backfill: easy
              # it should not last
              preemption.policy: fence
            resources:
              guaranteed:
"""
QUEUES = "partitions[0].queues[0].queues"


def changed(text: str) -> list[str]:
    """The lines that are new, and those that are gone."""
    rows = edit.difference(TEXT, text).splitlines()[3:]
    return [row[0] + row[1:].strip() for row in rows if row[0] in "+-"]


@pytest.mark.parametrize(
    ("queue", "path", "value", "lines"),
    [
        (0, ["resources", "max", "vcore"], "30", ["-max: {vcore: 26}", "+max: {vcore: 30}"]),
        (0, ["resources", "max", "gpu"], "2", ["-max: {vcore: 26}", "+max: {vcore: 26, gpu: 2}"]),
        (0, ["resources", "guaranteed", "vcore"], "1500m", ["+guaranteed: {vcore: 1500m}"]),
        (0, ["maxapplications"], "3", ["+maxapplications: 3"]),
        (1, ["resources", "max", "gpu"], "2", ["+resources: {max: {gpu: 2}}"]),
        (2, ["properties", "wait.max"], "10m", ["+wait.max: 10m"]),
        (2, ["resources", "guaranteed", "gpu"], "1", ["-guaranteed:", "+guaranteed: {gpu: 1}"]),
    ],
)
def test_a_value_goes_where_it_belongs(queue: int, path: list[str], value: str, lines: list[str]) -> None:
    """In a block as a line of its own, between braces behind what is there; comments stay."""
    text = edit.with_value(TEXT, [*edit.steps(f"{QUEUES}[{queue}]"), *path], value)
    assert changed(text) == lines
    load_text(text)


def test_a_key_is_taken_out() -> None:
    """The last one leaves empty braces behind."""
    late = [*edit.steps(f"{QUEUES}[2]"), "properties"]
    once = edit.without_key(TEXT, [*late, "preemption.policy"])
    assert "-preemption.policy: fence" in changed(once)
    twice = edit.without_key(once, [*late, "backfill"])
    assert load_text(twice).partitions[0].root.queues[2].properties == {}
    with pytest.raises(KeyError):
        edit.without_key(TEXT, [*late, "wait.max"])


def test_a_key_is_added_to_what_has_an_anchor() -> None:
    """It stands below the others, not below the anchor."""
    named = TEXT.replace("resources:\n              max", "resources: &limits\n              max")
    text = edit.with_value(named, [*edit.steps(f"{QUEUES}[0]"), "resources", "guaranteed", "vcore"], "2")
    batch = load_text(text).partitions[0].root.queues[0]
    assert batch.guaranteed is not None
    assert (dict(batch.guaranteed), "\n              guaranteed: {vcore: 2}\n" in text) == ({"vcore": 2000}, True)


def test_a_place_that_is_not_there_is_an_error() -> None:
    """An entry of a list is not made up."""
    with pytest.raises(KeyError):
        edit.with_value(TEXT, [*edit.steps(f"{QUEUES}[7]"), "maxapplications"], "3")


@pytest.mark.parametrize(
    ("old", "new"), [("default\n", "default\t# the only one\n"), ("guaranteed:\n", "guaranteed:\n---\n")]
)
def test_any_text_that_the_checks_take_can_be_edited(old: str, new: str) -> None:
    """One with a tab before a comment, and one with an end of its document."""
    odd = TEXT.replace(old, new)
    text = edit.with_value(odd, [*edit.steps(f"{QUEUES}[0]"), "resources", "max", "vcore"], "30")
    assert text == odd.replace("26", "30")
    late = [*edit.steps(f"{QUEUES}[2]"), "properties"]
    without = "\n              # it should not last\n              preemption.policy: fence"
    assert edit.without_key(odd, [*late, "preemption.policy"]) == odd.replace(without, "")
