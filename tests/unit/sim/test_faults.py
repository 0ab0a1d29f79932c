"""Faults: nodes lost and back, from a seed or a list."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path

import pytest

from fairlead.sim.jobs import BACK, LOST, Fault, FaultError, drawn, known_only, read_faults
from fairlead.sim.rows import TraceError


def test_drawn_faults_alternate_for_each_node_and_never_go_back_in_time() -> None:
    """Lost, back, lost, ..."""
    faults = list(islice(drawn(["a", "b", "c"], 7, 1000, 100), 300))
    assert [f.at_ms for f in faults] == sorted(f.at_ms for f in faults)
    for node in ("a", "b", "c"):
        assert [f.what for f in faults if f.node == node][:4] == [LOST, BACK, LOST, BACK]


def test_a_seed_gives_always_the_same_faults() -> None:
    """And another one others."""
    first, again, other = (list(islice(drawn(["a", "b"], seed, 1000, 100), 20)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_means_are_as_stated() -> None:
    """Within a tenth, over many."""
    faults = list(islice(drawn(["a"], 3, 10_000, 1000), 4000))
    away = [b.at_ms - a.at_ms for a, b in pairwise(faults) if a.what == LOST]
    there = [b.at_ms - a.at_ms for a, b in pairwise(faults) if a.what == BACK]
    assert abs(sum(away) / len(away) - 1000) < 100
    assert abs(sum(there) / len(there) - 10_000) < 1000


def test_a_list_is_read_in_order_of_time(tmp_path: Path) -> None:
    """Seconds, a node, and what."""
    file = tmp_path / "faults.csv"
    file.write_text("time,node,what\n20,n1,back\n2.5,n1,lost\n")
    assert read_faults(str(file)) == [Fault(2500, "n1", LOST), Fault(20_000, "n1", BACK)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("time,node\n", "does not name: what"),
        ("time,node,what\n1,n,gone\n", ":2: column what: 'gone': must be lost or back"),
        ("time,node,what\n1,,lost\n", ":2: column node: '': must not be empty"),
        ("time,node,what\nsoon,n,lost\n", ":2: column time: 'soon': must be seconds, or a time such as"),
        ("time,node,what\n-1,n,lost\n", "must be 0 or more"),
        ("time,node,what\ninf,n,lost\n", "must be 0 or more seconds"),
    ],
)
def test_a_bad_list_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    """File, line, column, value."""
    file = tmp_path / "faults.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=r"faults\.csv") as e:
        read_faults(str(file))
    assert says in str(e.value)


def test_a_node_that_does_not_exist_is_refused() -> None:
    """A typing error is not passed over."""
    with pytest.raises(FaultError, match="there is no node n9 that could be lost"):
        known_only([Fault(1, "n9", LOST)], ["n1"])


def test_means_must_be_positive() -> None:
    """No division by zero later."""
    with pytest.raises(FaultError, match="1 ms or more"):
        next(drawn(["a"], 1, 0, 10))


def test_lost_and_back_at_one_moment_is_a_restart(tmp_path: Path) -> None:
    """As it stands in the file: the other way round the node would be away for ever."""
    (tmp_path / "faults.csv").write_text("time,node,what\n9,m,lost\n5,n,lost\n5,n,back\n")
    assert [(each.node, each.what) for each in read_faults(str(tmp_path / "faults.csv"))] == [
        ("n", LOST),
        ("n", BACK),
        ("m", LOST),
    ]
