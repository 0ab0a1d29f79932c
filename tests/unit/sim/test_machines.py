"""Nodes, from words and from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.core.model.resources import Resources
from fairlead.sim.rows import TraceError
from fairlead.sim.sources import MachineError, machines


def test_words_say_how_many_of_what() -> None:
    """Several kinds, numbered through."""
    nodes = machines("2x vcore=4,memory=1Gi; 1 x vcore=8")
    assert [n.id for n in nodes] == ["node-00000", "node-00001", "node-00002"]
    assert [n.capacity for n in nodes][1:] == [Resources({"vcore": 4000, "memory": 2**30}), Resources({"vcore": 8000})]


def test_a_file_has_a_row_for_each_node(tmp_path: Path) -> None:
    """Its columns are resources; empty is none."""
    file = tmp_path / "nodes.csv"
    file.write_text("id,vcore,nvidia.com/gpu\na,4,2\nb,8,\n")
    assert [(n.id, n.capacity) for n in machines(str(file))] == [
        ("a", Resources({"vcore": 4000, "nvidia.com/gpu": 2})),
        ("b", Resources({"vcore": 8000})),
    ]


@pytest.mark.parametrize("words", ["vcore=4", "0x vcore=4", "2x vcore=", "2x =4", "2x vcore=many", "2x vcore=0"])
def test_bad_words_are_refused(words: str) -> None:
    """With what they should be."""
    with pytest.raises(MachineError, match="nodes"):
        machines(words)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,vcore\n", ":1: the first line must name id"),
        ("id,vcore\n", ":1: names no node"),
        ("id,vcore\na,1\na,2\n", ":3: column id: 'a': is in line 2 already"),
        ("id,vcore\n,1\n", ":2: column id: '': must not be empty"),
        ("id,vcore\na,x\n", ":2: column vcore: 'x'"),
        ("id,vcore\na\n", ":2: has 1 columns"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    """File, line, column."""
    file = tmp_path / "nodes.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=r"nodes\.csv") as e:
        machines(str(file))
    assert says in str(e.value)


def test_cpu_is_what_people_call_cores(tmp_path: Path) -> None:
    """In words and in the heading of a file; a second resource of that name would be a trap."""
    file = tmp_path / "nodes.csv"
    file.write_text("id,cpu\na,4\n")
    assert machines("1x cpu=4")[0].capacity == machines(str(file))[0].capacity == Resources({"vcore": 4000})
