"""The search for better settings: what is tried, what is chosen, and what is said of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from fairlead.config import load_text
from fairlead.sim.goals import Goal, GoalError, of_every_queue, read_bound, read_goal
from fairlead.sim.settings import SettingError, chosen, leaves_of, objection, read_setting
from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial
from fairlead.sim.tune import in_words, tune
from fairlead.sim.tuning import Found, Interrupted, Plan, Tuning

FILE = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: batch   # a remark
            resources: {max: {vcore: 40}}
          - name: web
"""
HOUR_MS = 3_600_000


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("root.batch max.vcore=16,24, 32", ("16", "24", "32")),
        ("root.batch max.vcore=16..32/8", ("16", "24", "32")),
        ("root.batch max.vcore=16..30/8", ("16", "24", "30")),
        ("root.batch guaranteed.memory=64Gi..192Gi/64Gi", ("64Gi", "128Gi", "192Gi")),
        ("root.web preemption.delay=30s,5m", ("30s", "5m")),
        ("root.web priority.offset=-10..10/10", ("-10", "0", "10")),
        ("root.batch max.vcore=1..100", ("1", "16", "31", "46", "61", "76", "91", "100")),
    ],
)
def test_values_are_listed_or_a_range(text: str, values: tuple[str, ...]) -> None:
    assert read_setting(text).values == values


@pytest.mark.parametrize(
    "text",
    [
        "root.batch=3",
        "root.batch max.vcore",
        "root.batch max.vcore=3",
        "root.a max.vcore=3..3",
        "root.a x=1Gi..2",
        "root.a x=1..9/0",
    ],
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match=re.escape(text)):
        read_setting(text)


def test_a_choice_goes_into_the_file_and_leaves_the_rest() -> None:
    """Remarks stay; what is not there yet is added."""
    maximum, offset = read_setting("root.batch max.vcore=16,24"), read_setting("root.web priority.offset=0,5")
    count = read_setting("root.web maxapplications=1,2")
    text = chosen(FILE, {maximum: "24", offset: "5", count: "2"})
    assert "# a remark" in text
    batch, web = load_text(text).partitions[0].root.queues
    assert (dict(batch.max or {})["vcore"], web.properties["priority.offset"], web.max_applications) == (24_000, "5", 2)
    assert not objection(text, FILE)
    assert "priority.offset" in objection(chosen(FILE, {read_setting("root.web priority.offset=x,y"): "x"}), FILE)
    with pytest.raises(SettingError, match=r"the file has no queue root\.nope; it has root, root\.batch, root\.web"):
        chosen(FILE, {read_setting("root.nope max.vcore=1,2"): "1"})


def test_the_queue_is_that_of_the_partition_that_is_simulated() -> None:
    """Another partition may have one of the same name, and queues that nothing is simulated in."""
    two = f"{FILE}  - name: gpu\n    queues:\n      - name: root\n        queues: [{{name: batch}}, {{name: other}}]\n"
    text = chosen(two, {read_setting("root.batch max.vcore=16,24"): "24"})
    assert text == two.replace("vcore: 40", "vcore: 24")
    with pytest.raises(SettingError, match=r"the file has no queue root\.other; it has root, root\.batch, root\.web"):
        chosen(two, {read_setting("root.other max.vcore=1,2"): "1"})


def test_what_would_change_another_queue_is_refused() -> None:
    """An anchor that is used twice: the other queue would have the value, too."""
    twice = FILE.replace("resources: {", "resources: &r {").replace("- name: web", "- {name: web, resources: *r}")
    with pytest.raises(SettingError, match=r"root\.batch max\.vcore: it would change root\.web, too"):
        chosen(twice, {read_setting("root.batch max.vcore=16,24"): "24"})
    assert "priority.offset" in chosen(twice, {read_setting("root.batch priority.offset=1,2"): "1"})


# -- goals ------------------------------------------------------------------------------------------------------------


def figures(web: float, batch: float, lost: float = 0.0) -> dict[str, Any]:
    started = {
        name: {"started": {"mean": wait, "p95": 2 * wait}} for name, wait in (("root.web", web), ("root.batch", batch))
    }
    return {
        "waits": {"started": {"count": 9, "mean": (web + batch) / 2, "p95": max(web, batch)}, "not_started": 0},
        "waits_by": {"queue": started},
        "slowdown": {"mean": 2.0, "p95": 3.0},
        "use": {"vcore": {"while_coming": 0.5}, "memory": {"while_coming": None}},
        "stops": {"lost_run_s": lost, "evicted": 1},
    }


@pytest.mark.parametrize(
    ("words", "value", "text"),
    [
        ("mean wait", 350.0, "5.8 min"),
        ("p95  wait of root.Web", 200.0, "3.3 min"),
        ("p95 slowdown", 3.0, "3.00"),
        ("use of cpu", 0.5, "50.0%"),
        ("run time lost", 7.0, "7.0 s"),
        ("evictions", 1.0, "1"),
        ("mean wait of root.gone", None, "-"),
        ("use of memory", None, "-"),
    ],
)
def test_a_goal_is_a_figure(words: str, value: float | None, text: str) -> None:
    goal = read_goal(words)
    found = goal.of(figures(100, 600, 7))
    assert (found, goal.text(found)) == (value, text)
    assert goal.is_better(0.4, 0.5) is not words.startswith("use")


def test_a_bound_is_a_part_of_what_was() -> None:
    """Next to nothing does not count."""
    bound = read_bound("mean wait of root.batch+10%")
    assert bound.breach(figures(1, 109), figures(1, 100)) == 0
    assert bound.breach(figures(1, 130), figures(1, 100)) == pytest.approx(0.2)
    assert bound.breach(figures(1, 9), figures(1, 0)) == 0, "nine seconds are no breach"
    assert read_bound("use of cpu+10%").breach(figures(1, 1) | {"use": {"vcore": {"while_coming": 0.4}}}, figures(1, 1))
    assert read_bound("mean wait of root.batch+0%").breach(figures(1, 9), figures(1, 0)), "nothing is allowed"
    for wrong in ("mean wait+10", "mean wait", "wait+3%"):
        with pytest.raises(GoalError):
            read_bound(wrong)


def test_what_was_refused_for_want_of_a_queue_is_bound_too() -> None:
    """Its group has a name with blanks, which no goal that is typed has."""
    of_none = figures(1, 1)
    of_none["waits_by"]["queue"]["no queue named"] = {"started": None}
    assert [bound.breach(of_none, of_none) for bound in of_every_queue(of_none, 0.25)] == [0.0] * 4


# -- the search -------------------------------------------------------------------------------------------------------


class World:
    """Simulations that are a formula of the values in the file: the shorter the maximum, the better for web.

    The further it is below `batch_limit`, the longer batch waits, but not in the first `easy` hours; in the first
    `quiet` ones nothing waits. Only whole multiples of `step` make a difference.
    """

    def __init__(self, noise: float = 0.0, batch_limit: int = 0, quiet: int = 0, easy: int = 0, step: int = 1) -> None:
        self.noise, self.batch_limit, self.quiet, self.easy, self.step = noise, batch_limit, quiet, easy, step
        self.tried: list[str] = []
        self.trials: list[Trial] = []

    def simulate(self, about: str, trials: list[Trial]) -> list[dict[str, Any]]:
        self.tried.append(about)
        self.trials += trials
        return [self.outcome(trial) for trial in trials]

    def outcome(self, trial: Trial) -> dict[str, Any]:
        spec = load_text(Path(trial.queues).read_text())
        most = dict(spec.partitions[0].root.queues[0].max or {})["vcore"] // 1000
        most -= most % self.step
        hours = (trial.source.first_ms or 12 * HOUR_MS) // HOUR_MS
        if hours <= self.quiet:
            return {"interrupted": False, "figures": figures(0, 0)}
        batch = 100 if hours <= self.easy else 100 + 100 * max(self.batch_limit - most, 0)
        periods = [figures(10 * most + self.noise * (n % 2) * (40 - most), batch) for n in range(12)]
        return {"interrupted": False, "figures": figures(10 * most, batch), "periods": periods}


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    (tmp_path / "base.yaml").write_text(FILE)
    rows = [f"{hour * 3600},60,1,root.web" for hour in range(13)]
    (tmp_path / "t.csv").write_text("\n".join(["time,run,resources.vcore,queue", *rows]))
    source = Source(workload=str(tmp_path / "t.csv"), nodes="1x cpu=64")
    return Trial(name="base.yaml", queues=str(tmp_path / "base.yaml"), source=source)


def search(world: World, trial: Trial, tmp_path: Path, tries: int = 24, values: str = "20..60/2", **more: Any) -> Found:
    settings = (read_setting(f"root.batch max.vcore={values}"),)
    plan = Plan(
        settings, read_goal("mean wait of root.web"), 0.25, tries=tries, period_ms=HOUR_MS, period="hour", **more
    )
    return Tuning(trial, plan, FILE, tmp_path, world.simulate).run()


def test_the_best_is_found_in_rounds_and_holds(trial: Trial, tmp_path: Path) -> None:
    """All values on a little, a third of them on more; then on hours that nothing was chosen by."""
    world = World()
    found = search(world, trial, tmp_path)
    assert found.best is not None
    assert list(found.best.choice.values()) == ["20"]
    assert world.tried[0] == "round 1 of 3: 21 files, 2 hours of work"
    assert world.tried[1] == "round 2 of 3: 7 files, 4 hours of work"
    assert (found.periods, found.is_sure, found.broken) == (4, False, ()), "four hours are too few to be sure"


def test_what_little_work_does_not_tell_apart_goes_on_together(trial: Trial, tmp_path: Path) -> None:
    """Nothing waits in the first half of the work; the best is the last of 21 that are equal there."""
    world = World(quiet=4)
    found = search(world, trial, tmp_path, values=",".join(map(str, range(60, 19, -2))))
    assert world.tried[2] == "round 3 of 3: 21 files, 8 hours of work"
    assert found.best is not None
    assert list(found.best.choice.values()) == ["20"]


def test_neighbours_find_what_was_not_drawn(trial: Trial, tmp_path: Path) -> None:
    """Of many values only some are drawn; a walk goes on from the best of them."""
    found = search(World(), trial, tmp_path, tries=4)
    assert found.best is not None
    (value,) = found.best.choice.values()
    assert found.tried > 4
    drawn = search(World(), trial, tmp_path, tries=4, seed=1)
    assert drawn.best is not None
    assert drawn.best.choice == found.best.choice, "the same seed finds the same"
    assert int(value) < 40


def test_neighbours_that_are_as_good_are_passed(trial: Trial, tmp_path: Path) -> None:
    """Tasks of eight cores: of two maximums that are closer together than that neither is better."""
    world = World(step=8)
    found = search(world, trial, tmp_path, tries=6)
    assert [each.name for each in world.trials].count("0") == 4, "once on each length, and with the best at the end"
    assert found.best is not None
    assert int(next(iter(found.best.choice.values()))) < 24


def test_only_what_was_simulated_is_counted(trial: Trial, tmp_path: Path) -> None:
    """Of two neighbours one may be tried: two files in all."""
    world = World()
    found = search(world, trial, tmp_path, tries=1)
    assert found.tried == 2
    assert [about for about in world.tried if "neighbours" in about] == [
        "neighbours of the best: 1 file, 8 hours of work"
    ]


def test_what_breaks_a_condition_is_not_recommended(trial: Trial, tmp_path: Path) -> None:
    """Below 30 batch waits ten times as long; so 30 is the best."""
    found = search(World(batch_limit=30), trial, tmp_path)
    assert found.best is not None
    assert list(found.best.choice.values()) == ["30"]
    none = search(World(batch_limit=41), trial, tmp_path)
    assert none.best is None or none.broken == ()


def test_what_was_left_behind_on_less_work_is_tried_where_more_work_says_otherwise(
    trial: Trial, tmp_path: Path
) -> None:
    """Half of the work likes the smallest; on all of it batch waits too long with those, and 34 is the best."""
    found = search(World(batch_limit=34, easy=4), trial, tmp_path)
    assert found.best is not None
    assert list(found.best.choice.values()) == ["34"]


def test_a_condition_that_is_broken_later_is_said_once(trial: Trial, tmp_path: Path) -> None:
    """That of all queues and one of its own are of the same figure."""
    found = search(World(batch_limit=60, easy=8), trial, tmp_path, bounds=(read_bound("mean wait of root.batch+10%"),))
    assert found.broken == ("mean wait of root.batch 35 min → 68 min",)


class Newcomer(World):
    """In the end there is work of a queue that had none before; with less than 40 it waits."""

    def outcome(self, trial: Trial) -> dict[str, Any]:
        found = super().outcome(trial)
        if trial.period_ms is not None:
            wait = 900 if "vcore: 20" in Path(trial.queues).read_text() else 0
            for each in (found["figures"], *found["periods"]):
                each["waits_by"]["queue"]["root.late"] = {"started": {"mean": wait, "p95": wait}}
        return found


def test_a_queue_that_has_work_at_the_end_alone_has_its_condition(trial: Trial, tmp_path: Path) -> None:
    assert search(Newcomer(), trial, tmp_path).broken == ("mean wait of root.late 0 s → 15 min",)


def test_what_the_checks_refuse_is_counted_once(trial: Trial, tmp_path: Path) -> None:
    """It is a neighbour of the best, and of the one before."""
    found = search(World(), trial, tmp_path, values="20,no,30")
    assert (found.tried, found.refused) == (2, 1)


def test_where_the_checks_refuse_all_it_is_said_why(trial: Trial, tmp_path: Path) -> None:
    """Nothing is simulated for that."""
    world = World()
    says = "the checks refuse every file that was to be tried: with root.batch max.vcore=few, partitions[0].queues[0]"
    with pytest.raises(SettingError, match=re.escape(says)):
        search(world, trial, tmp_path, values="few,many")
    assert not world.tried


def test_ctrl_c_recommends_nothing(trial: Trial, tmp_path: Path) -> None:
    plan = Plan((read_setting("root.batch max.vcore=20,30"),), read_goal("mean wait"), 0.25, period_ms=HOUR_MS)
    tuning = Tuning(trial, plan, FILE, tmp_path, lambda _about, _trials: [])
    with pytest.raises(Interrupted):
        tuning.run()


@pytest.mark.parametrize(
    ("goal", "keep", "says"),
    [
        (
            "mean wait of root.wbe",
            "evictions+1%",
            "mean wait of root.wbe: the file has no such leaf queue; it has root",
        ),
        ("mean wait of root", "evictions+1%", "mean wait of root: the file has no such leaf queue"),
        ("mean wait", "p95 wait of root.btach+10%", "p95 wait of root.btach: the file has no such leaf queue"),
        ("use of cpus", "evictions+1%", "use of cpus: no task asks for it, or no node has it; there is a use of cpu"),
        ("mean wait", "use of memory+1%", "use of memory: no task asks for it"),
    ],
)
def test_figures_of_queues_and_resources_that_do_not_exist_are_refused(
    trial: Trial, tmp_path: Path, goal: str, keep: str, says: str
) -> None:
    """The search would find nothing better, and the condition would always be kept."""
    settings = (read_setting("root.batch max.vcore=20,30"),)
    plan = Plan(settings, read_goal(goal), 0.25, (read_bound(keep),), period_ms=HOUR_MS)
    with pytest.raises(SettingError, match=re.escape(says)):
        Tuning(trial, plan, FILE, tmp_path, World().simulate).run()


def test_a_limit_on_what_nothing_asks_for_is_refused(trial: Trial, tmp_path: Path) -> None:
    """All files would be alike, and it would be said that none is better."""
    plan = Plan((read_setting("root.batch max.gpus=1,2"),), read_goal("mean wait"), 0.25, period_ms=HOUR_MS)
    with pytest.raises(SettingError, match=r"root\.batch max\.gpus: no task asks for gpus; tasks ask for vcore"):
        Tuning(trial, plan, FILE, tmp_path, World().simulate).run()


def test_figures_of_queues_and_resources_that_exist_are_taken(trial: Trial, tmp_path: Path) -> None:
    settings = (read_setting("root.batch max.vcore=20,30"),)
    bounds = (read_bound("use of cpu+1%"), read_bound("p95 wait of root.Batch+10%"))
    plan = Plan(settings, read_goal("mean wait of root.Web"), 0.25, bounds, period_ms=HOUR_MS)
    assert Tuning(trial, plan, FILE, tmp_path, World().simulate).run().best is not None


def test_placement_rules_may_make_queues_that_the_file_does_not_have() -> None:
    rules = "    placementrules: [{name: user, create: true}]\n    queues:"
    assert leaves_of(FILE) == ["root.batch", "root.web"]
    assert leaves_of(FILE.replace("    queues:", rules, 1)) == []


def test_the_work_that_is_left_out_by_until_is_not_searched(trial: Trial, tmp_path: Path) -> None:
    """Of six hours four choose, and two are left to try it on."""
    world = World()
    search(world, replace(trial, until_ms=6 * HOUR_MS + 1), tmp_path)
    assert world.tried[2] == "round 3 of 3: 3 files, 4 hours of work"
    assert {each.until_ms for each in world.trials} == {None}, "it is played to its end"
    assert [each.source.first_ms for each in world.trials[-2:]] == [6 * HOUR_MS + 1] * 2


def test_a_setting_that_is_named_twice_is_refused(trial: Trial, tmp_path: Path) -> None:
    """One value would stand in the file, and two in the answer."""
    settings = (read_setting("root.batch max.vcore=20,30"), read_setting("root.Batch max.vcore=40,50"))
    plan = Plan(settings, read_goal("mean wait"), 0.25, period_ms=HOUR_MS)
    with pytest.raises(SettingError, match=r"root\.Batch max\.vcore is named twice: give all its values at once"):
        Tuning(trial, plan, FILE, tmp_path, World().simulate).run()


def test_too_little_work_is_said(trial: Trial, tmp_path: Path) -> None:
    plan = Plan((read_setting("root.batch max.vcore=20,30"),), read_goal("mean wait"), 0.25, period_ms=10 * HOUR_MS)
    with pytest.raises(SettingError, match="the work lasts 1 week, and 3 are needed"):
        Tuning(trial, plan, FILE, tmp_path, World().simulate).run()


# -- what is said -----------------------------------------------------------------------------------------------------


def told(found: Found, write: str = "") -> list[str]:
    plan = Plan((), read_goal("mean wait of root.web"), 0.25, period="day")
    return list(in_words(found, plan, "queues.yaml", write))


def test_it_is_said_that_not_all_was_tried(trial: Trial, tmp_path: Path) -> None:
    """The best of some is not the best of all."""
    found = search(World(), trial, tmp_path)
    settings = (read_setting("root.batch max.vcore=20..60/2"), read_setting("root.web priority.offset=1..500/10"))
    plan = Plan(settings, read_goal("mean wait of root.web"), 0.25, period="day")
    told = next(iter(in_words(replace(found, tried=21, refused=3), plan, "queues.yaml", "")))
    assert told.startswith("Best of 21 files (3 more are refused by the checks; 1,047 were not tried: --files tries")


def test_it_is_said_how_sure_it_is(trial: Trial, tmp_path: Path) -> None:
    """And only what is sure and keeps the conditions is offered as a change."""
    found = search(World(), trial, tmp_path)
    words = told(found, "new.yaml")
    assert words[0] == f"Best of {found.tried} files: root.batch max.vcore=20."
    assert words[1] == "Where it was chosen: mean wait of root.web 6.7 min → 3.3 min."
    assert "not surely better (4 days are too few to tell)" in words[2]
    assert words[-1] == "So keep what you have, or try again with more work; new.yaml is not written."
    assert told(Found(None, found.base, 9, 2, 4)) == [
        "Nothing better: of 9 files (2 more are refused by the checks) none has a better mean wait of root.web than "
        "6.7 min and keeps the conditions."
    ]
    assert told(Found(None, replace(found.base, figures={}), 9, 0, 4)) == [
        "Nothing better: in the work by which is chosen there is no mean wait of root.web; does any of it go there?"
    ]


def two_cores(trial: Trial, folder: Path, hours: int) -> Trial:
    """Two cores, which batch takes each hour for 20 minutes; web comes a minute later."""
    rows = [f"{hour * 3600},10m,1,root.batch,4" for hour in range(hours)]
    rows += [f"{hour * 3600 + 60},1m,1,root.web,1" for hour in range(hours)]
    (folder / "t.csv").write_text("\n".join(["time,run,resources.vcore,queue,count", *rows]))
    return Trial(name="b", queues=trial.queues, source=Source(workload=str(folder / "t.csv"), nodes="1x cpu=2"))


@pytest.mark.thorough
def test_it_searches_real_simulations(trial: Trial, tmp_path: Path) -> None:
    """A limit of one core lets web in."""
    tried = two_cores(trial, tmp_path, hours=18)
    plan = Plan(
        (read_setting("root.batch max.vcore=1,2"),),
        read_goal("mean wait of root.web"),
        no_worse=1000.0,
        period_ms=HOUR_MS,
        period="hour",
    )
    out, err = StringIO(), StringIO()
    assert tune(tried, plan, out, err, processes=1, write=str(tmp_path / "new.yaml")) == 0, err.getvalue()
    text = out.getvalue()
    assert "root.batch max.vcore=1." in text
    assert "it is surely better: " in text
    assert "max: {vcore: 1}" in (tmp_path / "new.yaml").read_text()
    plain = StringIO()
    assert tune(tried, plan, plain, StringIO(), processes=1, as_json=True) == 0
    found = json.loads(plain.getvalue())
    assert (found["best"], found["is_sure"]) == ({"root.batch max.vcore": "1"}, True)
    out, err = StringIO(), StringIO()
    assert tune(tried, plan, out, err, processes=1, write=str(tmp_path / "gone" / "new.yaml")) == 2
    assert "The change:" in out.getvalue(), "what was found is not lost with the file"
    assert err.getvalue().splitlines()[-1].startswith("cannot write it down: ")


@pytest.mark.thorough
def test_what_is_doubtful_of_the_work_is_said(trial: Trial, tmp_path: Path) -> None:
    """As sim run and compare say it: bad rows that were left out, columns that nothing reads."""
    tried = two_cores(trial, tmp_path, hours=6)
    with (tmp_path / "t.csv").open("a") as file:
        file.write("\n3,x,1,root.web,1")
    tried = replace(tried, source=replace(tried.source, skip_bad=True))
    plan = Plan((read_setting("root.batch max.vcore=1,2"),), read_goal("mean wait"), 0.25, period_ms=HOUR_MS)
    out = StringIO()
    assert tune(tried, plan, out, StringIO(), processes=1) == 0
    assert out.getvalue().splitlines()[-1].startswith("note: bad rows left out: 1; the first: ")
    out = StringIO()
    assert tune(tried, plan, out, StringIO(), processes=1, as_json=True) == 0
    assert len(json.loads(out.getvalue())["notes"]) == 1


@pytest.mark.thorough
def test_what_would_be_better_but_for_a_condition_is_said_with_it(trial: Trial, tmp_path: Path) -> None:
    """A limit of one core lets web in, and batch waits longer than it may."""
    tried = two_cores(trial, tmp_path, hours=6)
    setting = read_setting("root.batch max.vcore=1,2")
    plan = Plan((setting,), read_goal("mean wait of root.web"), no_worse=0.25, period_ms=HOUR_MS, period="hour")
    out = StringIO()
    assert tune(tried, plan, out, StringIO(), processes=1) == 0
    first, second = out.getvalue().splitlines()
    assert first.startswith("Nothing better: of 2 files none")
    assert second == (
        "Against conditions: root.batch max.vcore=1: mean wait of root.web 9.0 min → 0 s, but mean wait of root.batch "
        "5.2 min → 15 min (allowed: 25% worse)."
    )
    out = StringIO()
    assert tune(tried, plan, out, StringIO(), processes=1, as_json=True) == 0
    found = json.loads(out.getvalue())
    assert (found["best"], found["nearest"], len(found["against"])) == (None, {"root.batch max.vcore": "1"}, 1)


@pytest.mark.thorough
def test_what_is_refused_is_no_shorter_wait(trial: Trial, tmp_path: Path) -> None:
    """Of batch's gangs those of two are refused under a limit of one core; the others wait as before."""
    rows = [f"{hour * 3600},10m,1,root.batch,{count},yes" for hour in range(12) for count in (1, 2)]
    rows += [f"{hour * 3600 + 60},1m,1,root.web,1,no" for hour in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(["time,run,resources.vcore,queue,count,gang", *rows]))
    source = Source(workload=str(tmp_path / "t.csv"), nodes="1x cpu=3")
    setting = read_setting("root.batch max.vcore=1,3")
    plan = Plan((setting,), read_goal("mean wait of root.web"), no_worse=0.25, period_ms=HOUR_MS, period="hour")
    out = StringIO()
    assert tune(replace(trial, source=source), plan, out, StringIO(), processes=1) == 0
    first, second = out.getvalue().splitlines()
    assert first.startswith("Nothing better: of 2 files none")
    assert "but tasks that start 28 → 14 (allowed: 0% worse)." in second


def test_what_is_wrong_with_the_file_is_said_with_its_name(trial: Trial, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("a: [b")
    plan = Plan((), read_goal("mean wait"), no_worse=0.25, period_ms=HOUR_MS)
    err = StringIO()
    assert tune(trial, plan, StringIO(), err, processes=1) == 2
    assert err.getvalue().startswith(f"cannot tune: {tmp_path / 'base.yaml'}:2:1: not readable as YAML")


def test_a_goal_is_a_value() -> None:
    assert read_goal("evictions") == Goal("evictions", ("stops", "evicted"), "less", "count")


def test_a_range_of_very_many_values_is_refused_at_once() -> None:
    """They are not counted one by one: they would not fit into memory."""
    with pytest.raises(SettingError, match="has 10,000,000,000,000 values"):
        read_setting("root.batch max.memory=1..10000000000000/1")
