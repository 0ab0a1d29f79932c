"""One simulation, week by week."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from fairlead.sim.columns import Columns, End
from fairlead.sim.periods import LENGTHS, by_period
from fairlead.sim.simulate import compare, how_sure
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial

DAY_S = 86_400
FILE = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
"""
LIMIT = FILE + "            resources: {max: {vcore: 1}}\n"


def columns(*tasks: tuple[int, int, int]) -> Columns:
    """Of each task when it came, how long it waited and ran, in seconds; the first came at 1,000."""
    made = Columns()
    made.begin_ms = 1_000_000
    queue, user = made.queues.of("root.a"), made.users.of("ann")
    for number, (at, wait, run) in enumerate(tasks):
        at_ms = made.begin_ms + at * 1000
        task = made.add_task(str(number), queue, user, (("vcore", 1000),), 0, at_ms)
        started = made.add_run(task, "n", at_ms + wait * 1000)
        made.end_run(started, at_ms + (wait + run) * 1000, End.EVICTED if run == 7 else End.FINISHED)
    return made


def test_a_task_belongs_to_the_day_in_which_it_came() -> None:
    """A run to that in which it began; an empty day has no wait; less than half a day at the end is left out."""
    made = columns((0, 10, 5), (10, 20, 7), (DAY_S - 1, 90, 7), (2 * DAY_S, 0, 5), (3 * DAY_S + 100, 1, 1))
    first, second, third = by_period(made, LENGTHS["day"])
    assert first["waits"]["started"]["mean"] == 40
    assert first["waits_by"]["queue"]["root.a"]["tasks"] == 3
    assert [each["stops"]["lost_run_s"] for each in (first, second, third)] == [7, 7, 0]
    assert (second["waits"]["started"], second["waits_by"]["queue"]) == (None, {})
    assert third["waits"]["started"]["mean"] == 0
    assert by_period(Columns(), LENGTHS["week"]) == []


def compared(tmp_path: Path, days: int) -> str:
    (tmp_path / "a.yaml").write_text(FILE)
    (tmp_path / "b.yaml").write_text(LIMIT)
    rows = [f"{day * DAY_S + n},{600 + day},1,root.a" for day in range(days) for n in range(4)]
    (tmp_path / "t.csv").write_text("\n".join(["time,run,resources.vcore,queue", *rows, f"{days * DAY_S},1,1,root.a"]))
    source = Source(workload=str(tmp_path / "t.csv"), nodes="1x cpu=2")
    trials = [Trial(name=name, queues=str(tmp_path / name), source=source) for name in ("a.yaml", "b.yaml")]
    out = StringIO()
    assert compare(trials, out, StringIO(), processes=1, by="day") == 0
    return out.getvalue()


def test_files_are_compared_day_by_day(tmp_path: Path) -> None:
    """With how sure it is; one day says nothing about that."""
    assert "b.yaml loses to a.yaml in 6 of 6 days: mean wait 10 min (10 min to 10 min) more." in compared(tmp_path, 6)
    assert "cannot be told: the work lasts less than two days" in compared(tmp_path, 1)
    told = list(how_sure([{"interrupted": False}, {"interrupted": True}], [], "day"))
    assert told == ["whether that is sure cannot be told: it was interrupted"]
