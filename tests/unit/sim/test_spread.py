"""Several draws of one comparison: what is sure, and what may be chance."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairlead.sim.simulate import compare_draws
from fairlead.sim.sources import Source
from fairlead.sim.spread import compared, difference, in_words, is_sure
from fairlead.sim.trials import Trial

FILE = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
"""
LIMIT = FILE + "            resources: {max: {vcore: 8}}\n"


def outcome(name: str, web_s: float, batch_s: float, lost_s: float = 0.0, count: int = 100) -> dict[str, Any]:
    mean = (web_s + batch_s) / 2
    groups = {queue: {"started": {"mean": wait}} for queue, wait in (("root.web", web_s), ("root.batch", batch_s))}
    figures = {
        "waits": {"started": {"mean": mean, "count": count}},
        "waits_by": {"queue": groups},
        "stops": {"lost_run_s": lost_s},
    }
    return {"name": name, "figures": figures}


def test_what_each_draw_agrees_on_is_sure() -> None:
    """With who gains and who pays, and what it costs."""
    draws = [[outcome("a", 600, 600), outcome("b", 60 + n, 900 + 10 * n, 3600 + n)] for n in range(10)]
    (found,) = compared(draws)
    words = list(in_words(found))
    assert words[0].startswith("b beats a in 10 of 10 draws: mean wait 95 s (")
    assert words[0].endswith(" less.")
    assert words[1].startswith("With b, root.web gains most (")
    assert "root.batch pays most (" in words[1]
    assert words[2].startswith("Run time that came to nothing: 60 min (")
    wait = found["wait"]
    assert wait["low_s"] < wait["mean_s"] < wait["high_s"] < 0


def test_that_fewer_start_is_said() -> None:
    """What is refused, or never starts, waits for nothing."""
    (found,) = compared([[outcome("a", 600, 600), outcome("b", 60, 60, count=60)] for _ in range(5)])
    *_, last = in_words(found)
    assert last == "b starts 300 tasks in all, a 500."
    (found,) = compared([[outcome("a", 600, 600), outcome("b", 60, 60, count=99)] for _ in range(5)])
    assert "starts" not in " ".join(in_words(found))


def test_what_another_draw_turns_around_is_no_difference() -> None:
    """Half of the draws say this, half of them that; and few draws are said to be few."""
    draws = [[outcome("a", 600, 600), outcome("b", 600 + sign * 300, 600)] for sign in (1, -1) * 5]
    words = list(in_words(compared(draws)[0]))
    assert words[0].startswith("Between b and a there is no sure difference: mean wait ")
    assert "less in 5 of 10 draws" in words[0]
    assert words[1] == "With b, no queue surely gains or pays."
    few = next(in_words(compared(draws[:2])[0]))
    assert "2 draws are few: --seeds 10" in few


def test_a_queue_that_has_work_in_one_draw_alone_tells_nothing() -> None:
    """Of one difference each resampling is the same: that is no surety."""
    draws = [[outcome("a", 600, 600), outcome("b", 60 + n, 600)] for n in range(10)]
    for each, wait in zip(draws[0], (60.0, 7200.0), strict=True):
        each["figures"]["waits_by"]["queue"]["root.rare"] = {"started": {"mean": wait}}
    (found,) = compared(draws)
    assert found["by_queue"]["root.rare"]["of"] == 1
    assert "root.rare" not in " ".join(in_words(found))


@pytest.mark.parametrize("draws", [5, 10])
def test_what_is_chance_is_called_sure_in_one_of_ten(draws: int) -> None:
    """Of five it was each fourth: resamplings of so few vary less than the draws do."""
    chance = Random(1)
    found = (difference([(chance.gauss(0, 1), 0.0) for _ in range(draws)]) for _ in range(150))
    assert sum(is_sure(each) for each in found if each is not None) <= 22


@pytest.mark.thorough
def test_of_many_queues_chance_makes_none_gain_or_pay() -> None:
    """The largest of twenty differences that are none looked sure nearly always."""
    chance, named = Random(1), 0
    for _ in range(15):
        draws = [[outcome("a", 600, 600), outcome("b", 600, 600)] for _ in range(10)]
        for first, other in draws:
            for queue in (f"root.q{number}" for number in range(20)):
                first["figures"]["waits_by"]["queue"][queue] = {"started": {"mean": 600.0}}
                other["figures"]["waits_by"]["queue"][queue] = {"started": {"mean": chance.gauss(600, 60)}}
        named += "no queue surely gains or pays" not in list(in_words(compared(draws)[0]))[1]
    assert named <= 4


def test_one_difference_is_never_sure() -> None:
    """It is the same in each resampling."""
    found = difference([(60.0, 0.0), (None, 5.0)])
    assert found is not None
    assert (found["of"], found["mean_s"], is_sure(found)) == (1, 60.0, False)


@pytest.mark.thorough
def test_draws_are_simulated_side_by_side(tmp_path: Path) -> None:
    """Each with its own work, the same under both files; the same seeds say the same."""
    (tmp_path / "a.yaml").write_text(FILE)
    (tmp_path / "b.yaml").write_text(LIMIT)
    source = Source(workload="poisson", nodes="1", tasks=60)
    trials = [Trial(name=name, queues=str(tmp_path / name), source=source) for name in ("a.yaml", "b.yaml")]
    told = []
    for _ in range(2):
        out = StringIO()
        assert compare_draws(trials, range(3, 6), out, StringIO(), as_json=True, processes=1) == 0
        told.append(out.getvalue())
    assert told[0] == told[1]
    found = json.loads(told[0])
    assert found["seeds"] == [3, 4, 5]
    (only,) = found["comparisons"]
    assert (only["name"], only["than"], only["draws"]) == ("b.yaml", "a.yaml", 3)
    assert only["wait"]["more"] == 3, "less room makes all wait longer"
