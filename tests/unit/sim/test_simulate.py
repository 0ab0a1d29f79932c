"""Running and comparing queue files: texts, files, status, Ctrl-C."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fairlead.sim import gains
from fairlead.sim.simulate import Files, bars_of, compare, run, whole_draws
from fairlead.sim.sources import Source, SourceError
from fairlead.sim.trials import Trial, TrialFailed, run_trials
from fairlead.sim.verdicts import counted, in_words, rows
from fairlead.times import span

QUEUES = """
partitions:
  - name: default
    preemption: {enabled: false}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: a, resources: {guaranteed: {vcore: 1}}}
          - {name: b, properties: {priority.offset: "0"}}
"""
TASKS = "time,run,resources.vcore,queue,user\n0,100,1,root.a,ann\n1,10,1,root.b,bob\n2,10,1,root.a,ann\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Three tasks for one core, and two queue files: b goes ahead of a in the second."""
    (tmp_path / "tasks.csv").write_text(TASKS)
    (tmp_path / "one.yaml").write_text(QUEUES)
    (tmp_path / "two.yaml").write_text(QUEUES.replace('"0"', '"10"'))
    return tmp_path


def trial(place: Path, name: str = "one", **options: Any) -> Trial:
    source = Source(
        workload=str(place / "tasks.csv"), nodes=options.pop("nodes", "1x vcore=1"), **options.pop("source", {})
    )
    return Trial(name=name, queues=str(place / f"{name}.yaml"), source=source, **options)


def ran(*trials: Trial, **options: Any) -> tuple[int, str, str]:
    """Status, output, error output; of `run` with one trial, else of `compare` in this process."""
    out, err = io.StringIO(), io.StringIO()
    if len(trials) == 1:
        status = run(trials[0], out, err, **options)
    else:
        status = compare(trials, out, err, processes=options.pop("processes", 1), **options)
    return status, out.getvalue(), err.getvalue()


def test_a_run_reports_totals_that_add_up(place: Path) -> None:
    """For people and for programs."""
    status, text, err = ran(trial(place))
    assert (status, err) == (0, "")
    assert "submitted 3 = waiting 0 + running 0 + completed 3 + refused 0 + given up 0\n" in text
    assert "waiting times of 3 that started: mean 69 s" in text
    plain = json.loads(ran(trial(place), as_json=True)[1])
    assert plain["totals"]["completed"] == 3
    assert plain["adds_up"] is True
    assert re.fullmatch("[0-9a-f]{64}", plain["digest"])


def test_a_comparison_shows_both_and_says_who_gains(place: Path) -> None:
    """The task of queue b comes earlier with the second file, that of a later."""
    status, text, err = ran(trial(place), trial(place, "two"))
    assert (status, err) == (0, "")
    assert "one" in text.splitlines()[1]
    plain = json.loads(ran(trial(place), trial(place, "two"), as_json=True)[1])
    means = [o["figures"]["waits_by"]["queue"]["root.b"]["started"]["mean"] for o in plain["outcomes"]]
    assert means == [109, 99]
    assert any("root.b gains most (109 s → 99 s)" in said for said in plain["in_words"])
    assert len(plain["in_words"]) <= 3
    assert plain["in_words"] == [line for line in text.splitlines() if line in plain["in_words"]]


def test_a_comparison_of_many_files_is_as_wide_as_it_needs(place: Path) -> None:
    """Of twelve with long names one name was as good as another, and the last ones had no figures."""
    names = [f"a-rather-long-name-of-a-file-{number}" for number in range(12)]
    heads, _, mean = ran(*(replace(trial(place), name=name) for name in names))[1].splitlines()[1:4]
    assert heads.split() == names
    assert mean.split() == ["mean", *["69", "s"] * 12]


def test_several_processes_give_the_same(place: Path) -> None:
    """And the order of the files is kept."""
    trials = [trial(place), trial(place, "two")]

    def lasting(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{k: v for k, v in o.items() if k != "cpu_s"} for o in outcomes]

    assert json.dumps(lasting(run_trials(trials, 2))) == json.dumps(lasting(run_trials(trials, 1)))


def test_what_is_wrong_with_one_trial_is_said(place: Path) -> None:
    """Whether it runs here or in a process of its own."""
    (place / "two.yaml").write_text("partitions: [{name: default}]\n")
    with pytest.raises(ValueError, match=r"two\.yaml"):
        run_trials([trial(place), trial(place, "two")])
    with pytest.raises(TrialFailed, match=r"two: .*two\.yaml"):
        run_trials([trial(place), trial(place, "two")], 2)
    status, out, err = ran(trial(place, "two"))
    assert (status, out) == (2, "")
    assert err.startswith("cannot simulate: ")


class Page(html.parser.HTMLParser):
    """What a page refers to, and whether its elements close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.refers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.refers += [f"{tag} {n}={v}" for n, v in attrs if n in ("src", "href", "data", "action", "srcset")]
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag, attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_is_one_whole_page_without_the_network(place: Path) -> None:
    """Every element closes, nothing is referred to, the words and figures are in it."""
    path = place / "report.html"
    assert ran(trial(place), trial(place, "two"), files=Files(report=str(path)))[0] == 0
    text = path.read_text()
    page = Page(text)
    assert (page.open, page.refers) == ([], [])
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
    for word in (
        "In short",
        "Waiting times",
        "Utilisation",
        "Shares by queue",
        "Share against guarantee",
        "Nodes",
        "Who gains and who pays",
        "mean wait by queue",
        "root.b gains most",
    ):
        assert word in text
    assert text.count("<svg") >= 8


def test_the_report_is_the_same_each_time(place: Path) -> None:
    """Byte for byte, also under another hash seed."""
    pages = set()
    code = (
        "import sys; from fairlead.sim.simulate import *; from fairlead.sim.sources import Source;"
        "p = sys.argv[1]; s = Source(workload='tenants', nodes='5', lasts='3h');"
        "run(Trial(name='x', source=s, mtbf_ms=7200000), files=Files(report=p))"
    )
    for seed in ("0", "4711"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        path = place / f"{seed}.html"
        subprocess.run([sys.executable, "-c", code, str(path)], env=environment, capture_output=True, check=True)
        pages.add(path.read_bytes())
    assert len(pages) == 1


def test_names_from_outside_are_escaped(place: Path) -> None:
    """A queue file called like a tag does no harm."""
    path = place / "report.html"
    odd = Trial(name="<b>&'\"", queues=str(place / "one.yaml"), source=trial(place).source)
    assert ran(odd, files=Files(report=str(path)))[0] == 0
    assert "<b>" not in path.read_text()
    assert Page(path.read_text()).open == []


def test_the_csv_file_has_a_column_for_each_queue_file(place: Path) -> None:
    """Plain numbers."""
    path = place / "figures.csv"
    ran(trial(place), trial(place, "two"), files=Files(csv=str(path)))
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows[0] == ["group", "figure", "one", "two"]
    assert ["waiting time by queue", "root.b mean", "109.0", "99.0"] in rows


def test_plots_are_written_as_files(place: Path) -> None:
    """Each stands alone: well formed, with its looks, its legend and nothing from elsewhere."""
    folder = place / "pictures"
    odd = Trial(name="a<b>&c", queues=str(place / "one.yaml"), source=trial(place).source)
    assert ran(odd, trial(place, "two"), files=Files(images=str(folder)))[0] == 0
    files = {path.stem: path.read_text() for path in folder.iterdir() if path.suffix == ".svg"}
    assert sorted(files) == ["gains", "nodes", "shares", "tasks", "utilisation", "waits"]
    svg = "{http://www.w3.org/2000/svg}"
    for name, text in files.items():
        root = ElementTree.fromstring(text)
        assert root.tag == f"{svg}svg"
        said = [each.text for each in root.iter(f"{svg}text")]
        if name == "gains":
            assert {"two against a<b>&c", "root.b", "109 s → 99 s"} <= set(said)
        else:
            assert {"root.a", "root.b"} <= set(said) if name in ("shares", "nodes") else {"a<b>&c", "two"} <= set(said)
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
        height = float(root.attrib["height"])
        assert all(float(each.attrib.get("y", 0)) < height for each in root.iter(f"{svg}text"))
    lines = [p for p in ElementTree.fromstring(files["tasks"]).iter(f"{svg}path") if p.get("class") == "line"]
    assert len(lines) == 4, "waiting and running, of each of both"
    headings = [
        t.text for t in ElementTree.fromstring(files["utilisation"]).iter(f"{svg}text") if t.get("class") == "head"
    ]
    assert "cpu" in headings
    assert "vcore" not in files["utilisation"]
    assert ElementTree.fromstring(files["waits"]).find(f".//{svg}g[@aria-label='waiting times']") is not None


def test_the_folder_for_plots_cannot_be_written(place: Path) -> None:
    """A sentence names it."""
    (place / "file").write_text("")
    status, _, err = ran(trial(place), files=Files(images=str(place / "file")))
    assert status == 2
    assert "file" in err


def interrupted(calls: str) -> dict[str, Any]:
    """What a program that simulates a lot prints when it gets a Ctrl-C after it has begun; its status is 130."""
    script = (
        "import sys\n"
        "from fairlead.sim.simulate import *\n"
        "from fairlead.sim.sources import Source\n"
        "s = Source(workload='poisson', nodes='20', tasks=2000000)\n"
        "if __name__ == '__main__':\n"
        "    print('begun', file=sys.stderr, flush=True)\n"
        f"    sys.exit({calls})\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"begun\n"
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=50)
    assert process.returncode == 130, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.thorough
def test_ctrl_c_reports_what_there_is() -> None:
    """Marked as partial, with its status."""
    plain = interrupted("run(Trial(name='x', source=s), as_json=True)")
    assert plain["interrupted"]
    assert plain["adds_up"]
    assert 0 < plain["totals"]["submitted"] < 2_000_000


@pytest.mark.thorough
def test_ctrl_c_stops_every_process_of_a_comparison() -> None:
    """Both hand over what they have."""
    plain = interrupted("compare([Trial(name=n, source=s) for n in 'xy'], as_json=True)")
    assert [o["interrupted"] for o in plain["outcomes"]] == [True, True]
    assert any(sentence.startswith("y was interrupted") for sentence in plain["in_words"])


def test_progress_is_shown_where_it_is_wanted(place: Path) -> None:
    """On the error output; not when that is no terminal."""
    assert "tasks came or ended" in ran(trial(place), progress=True)[2]
    assert ran(trial(place))[2] == ""


def test_faults_come_from_a_file_or_from_a_seed(place: Path) -> None:
    """Both reach the engine; an unknown node is an error."""
    (place / "faults.csv").write_text("time,node,what\n5,node-00000,lost\n8,node-00000,back\n")
    plain = json.loads(ran(trial(place, faults=str(place / "faults.csv")), as_json=True)[1])
    assert plain["figures"]["stops"]["lost_with_node"] == 1
    drawn = json.loads(ran(trial(place, mtbf_ms=30_000, mttr_ms=1000), as_json=True)[1])
    assert drawn["figures"]["stops"]["lost_with_node"] >= 1
    (place / "faults.csv").write_text("time,node,what\n5,x,lost\n")
    assert "there is no node x" in ran(trial(place, faults=str(place / "faults.csv")))[2]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"workload": "nothing.csv"}, "No such file"),
        ({"workload": "nothing"}, "there is no such file; give a file (.swf, .csv"),
        ({"workload": "faults.log"}, "`fairlead sim import faults.log` makes a table of what another system wrote"),
        ({"workload": "poisson", "nodes": "six"}, "nodes 'six': there is no such file; write COUNT x RESOURCE="),
        ({"workload": "poisson", "nodes": "0"}, "must be 1 to 1,000,000"),
        ({"workload": "poisson", "lasts": "soon"}, "--lasts 'soon' must be a time"),
        ({"workload": "tasks.csv", "load": 0.5}, "--load is for made-up workloads"),
        ({"workload": "tasks.csv"}, "names no nodes: say --nodes"),
        ({"workload": "poisson", "since": 5}, "--since and --before are for journals"),
        ({"workload": "."}, "journals cannot be read here"),
        ({"workload": ".", "since": 5, "until": 5, "journal": print}, "--since must be earlier than --before"),
    ],
)
def test_a_workload_that_cannot_be_had_is_a_sentence(
    place: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], says: str
) -> None:
    """With what to do."""
    monkeypatch.chdir(place)
    Path("faults.log").touch()
    with pytest.raises((SourceError, OSError)) as e:
        Source(**options).open()
    assert says in str(e.value)


def test_bad_rows_are_left_out_and_said(place: Path) -> None:
    """When that is wanted."""
    (place / "tasks.csv").write_text(TASKS + "x,1,1,root.a,ann\n")
    assert "tasks.csv:5: column time: 'x'" in ran(trial(place))[2]
    status, text, _ = ran(trial(place, source={"skip_bad": True}))
    assert status == 0
    assert "bad rows left out: 1; the first: " in text


def test_equal_outcomes_make_no_difference(place: Path) -> None:
    """And one alone has nothing to be compared with."""
    (place / "two.yaml").write_text(QUEUES)
    outcomes = run_trials([trial(place), trial(place, "two")])
    assert in_words(outcomes) == ["two makes no difference worth mentioning against one."]
    assert in_words(outcomes[:1]) == []


def test_slowdown_is_over_the_time_that_a_task_ran(place: Path) -> None:
    """Who waits 200 s and is cut off after 100 s took three times as long as it had to, whatever it would have run."""
    (place / "tasks.csv").write_text(
        "time,run,time_limit,resources.vcore,queue,user\n0,200,200,1,root.a,ann\n0,1000,100,1,root.a,bob\n"
    )
    [outcome] = run_trials([trial(place)])
    assert outcome["figures"]["stops"]["cut_off"] == 1
    assert (outcome["figures"]["slowdown"]["mean"], outcome["figures"]["slowdown"]["max"]) == (2.0, 3.0)


def test_work_that_comes_at_one_moment_has_no_use_while_it_comes(place: Path) -> None:
    """It is shown as `-`, in a run and in a comparison, and is no difference worth a word."""
    (place / "tasks.csv").write_text(TASKS.replace("\n1,", "\n0,").replace("\n2,", "\n0,"))
    (status, alone, _), (other, both, _) = ran(trial(place)), ran(trial(place), trial(place, "two"))
    assert (status, other) == (0, 0)
    assert re.search(r"peak +- while work came, of", alone)
    assert re.search(r"utilisation while work comes *\n +cpu +- +-\n", both)
    assert "utilisation while work comes cpu" not in both
    paths = {name: str(place / f"out.{name}") for name in ("csv", "html")}
    ran(trial(place), trial(place, "two"), files=Files(report=paths["html"], csv=paths["csv"]))
    assert "utilisation while work comes,cpu,,\n" in Path(paths["csv"]).read_text()
    assert "while work comes" in Path(paths["html"]).read_text()


def test_texts() -> None:
    """Times in the unit that suits them, and courses as bars."""
    assert [span(s) for s in (0, 0.25, 42, 90, 600, 7200, 200_000)] == [
        "0 s",
        "0.2 s",
        "42 s",
        "90 s",
        "10 min",
        "2.0 h",
        "2.3 d",
    ]
    assert bars_of([0.0, 0.5, 1.0, 0.001], 4) == " ▄█▁"


@pytest.mark.parametrize("options", [{"workload": "gone.csv"}, {"nodes": "gone.csv"}])
def test_a_file_that_is_not_there_is_named(place: Path, options: dict[str, str]) -> None:
    """In words, and without the number that the system gives it; nothing is said of a queue file that is all right."""
    source = Source(**({"workload": str(place / "tasks.csv"), "nodes": "1x vcore=1"} | options))
    wanted = [Trial(name=name, queues=str(place / f"{name}.yaml"), source=source) for name in ("one", "two")]
    says = "cannot simulate: gone.csv: cannot be opened: no such file or directory\n"
    for trials in (wanted[:1], wanted):
        assert ran(*trials) == (2, "", says)


def test_a_number_of_nodes_alone_is_for_made_up_work(place: Path) -> None:
    """It is no name of a file."""
    status, _, says = ran(trial(place, nodes="4"))
    assert (status, says) == (
        2,
        "cannot simulate: nodes '4': a number is for made-up work; write 4x RESOURCE=QUANTITY,...\n",
    )


def test_what_is_refused_is_said_with_the_queue(place: Path) -> None:
    """Queues that no file has are not passed over as no difference."""
    (place / "tasks.csv").write_text(TASKS.replace("root.a", "root.x").replace("root.b", "root.y"))
    status, shown, _ = ran(trial(place), trial(place, "two"))
    assert status == 0
    assert "makes no difference" not in shown
    for name, count, queue in (("one", 2, "root.x"), ("one", 1, "root.y"), ("two", 2, "root.x"), ("two", 1, "root.y")):
        assert f"{name} refuses {counted(count, 'task')}: queue {queue}: " in shown


def test_what_waits_is_told_by_reason(place: Path) -> None:
    """Thirteen that wait for the same are one line; who waits for something else has his own."""
    wide = "".join(f"{i},10,4,root.a,ann\n" for i in range(12))
    (place / "tasks.csv").write_text(TASKS + wide + "20,10,9,root.b,bob\n21,10,4,root.a,ann\n")
    status, shown, _ = ran(trial(place))
    assert status == 0
    begin = shown.index("still waiting: 14, ")
    told = shown[begin:].split("\n")[1:3]
    assert told[0].startswith("  line-5, line-6, line-7 and 10 more: needs cpu 4 ")
    assert told[1].startswith("  line-17: needs cpu 9 ")
    plain = json.loads(ran(trial(place), as_json=True)[1])["still_waiting"]
    assert [(g["tasks"], g["first"]) for g in plain] == [(13, ["line-5", "line-6", "line-7"]), (1, ["line-17"])]


def test_very_many_that_wait_are_counted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only some are asked why, and only some reasons get a line; the others are in the sums."""
    monkeypatch.setattr("fairlead.sim.trials.ASKED_MAX", 4)
    monkeypatch.setattr("fairlead.sim.simulate.REASONS_SHOWN", 2)
    (place / "tasks.csv").write_text(TASKS + "".join(f"9,10,{cores},root.a,ann\n" for cores in (4, 4, 5, 6, 7, 8)))
    lines = ran(trial(place))[1].splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("still waiting: 6,"))
    assert lines[begin + 3 : begin + 5] == [
        "  and 1 for 1 other reasons",
        "  and 2 that came later and were not asked for their reasons",
    ]


def test_a_table_is_mended_before_nodes_are_asked_for(place: Path) -> None:
    """Or one would say the nodes and then hear that the columns are wrong."""
    (place / "tasks.csv").write_text("when,what\n1,2\n")
    assert ran(trial(place, nodes=""))[2] == (
        f"cannot simulate: {place / 'tasks.csv'}:1: the first line must name the columns time, run and resources.NAME; "
        "not there: time, run (`fairlead sim import` makes a table of what another system wrote)\n"
    )


def test_columns_of_ones_own_are_a_note(place: Path) -> None:
    """Of a run and of a comparison, once."""
    (place / "tasks.csv").write_text(
        TASKS.replace("user\n", "user,cost\n").replace("ann\n", "ann,5\n").replace("bob", "bob,3")
    )
    says = "columns that mean nothing here were passed over: 'cost'"
    assert ran(trial(place))[1].count(says) == 1
    assert ran(trial(place), trial(place, "two"))[1].count(f"note: {says}\n") == 1


def test_who_pays_most_is_whose_wait_grows_most_and_the_middle_is_told_beside_the_end(place: Path) -> None:
    """Twelve minutes that become an hour are less than two hours that become seven; half of all waits count as well."""
    outcomes = run_trials([trial(place), trial(place, "two")])
    for outcome, waits in zip(outcomes, ((720.0, 9_000.0), (3_240.0, 25_200.0)), strict=True):
        started = outcome["figures"]["waits"]["started"]
        started["mean"], started["p50"], started["p95"] = 10_000.0, waits[0], 100_000.0 - 2 * waits[1]
        for queue, wait in zip(("root.a", "root.b"), waits, strict=True):
            outcome["figures"]["waits_by"]["queue"][queue]["started"]["mean"] = wait
    waits_said, who, *_ = in_words(outcomes)
    assert waits_said == "With two, waiting times are another: p50 12 min → 54 min, p95 23 h → 14 h."
    assert who == "In the mean root.b pays most (2.5 h → 7.0 h)."


def test_both_sides_are_told(place: Path) -> None:
    """Who waits longer in the mean, but of whom the unluckiest is better off and all is over earlier, hears both."""
    outcomes = run_trials([trial(place), trial(place, "two")])
    outcomes[1]["figures"]["waits"]["started"]["mean"] *= 2
    outcomes[1]["figures"]["slowdown"]["p95"] /= 2
    outcomes[1]["figures"]["last_completed_s"] /= 2
    waits, who, others = in_words(outcomes)
    assert waits.startswith("With two, waiting times get longer: mean ")
    assert who.startswith("In the mean root.b gains most (")
    better, _, worse = others.partition(", and worse in ")
    assert better.startswith("Beside that it is better in ")
    assert "bounded slowdown p95 " in better
    assert "tasks last one ended after 2.0 min → 60 s" in better
    assert "bounded slowdown p95 " not in worse


def test_who_does_less_is_not_done_earlier(place: Path) -> None:
    """The last one ended when it did, however long the simulation went on, and of less work that is no merit."""
    (place / "tasks.csv").write_text(TASKS + "0,1h,1,root.b,ann\n0,10,9,root.a,ann\n")
    first, other = run_trials([replace(trial(place), until_ms=86_400_000), trial(place, "two")])
    ended = next(row for row in rows([first, first]) if row.name == "last one ended after")
    assert (ended.values[0], ended.better) == (3720, "less")
    other["figures"]["tasks"]["completed"] = 0
    other["figures"]["last_completed_s"] = None
    assert "last one ended" not in " ".join(in_words([first, other]))
    other["figures"]["last_completed_s"] = 60
    assert "last one ended" not in " ".join(in_words([first, other]))


def test_who_never_starts_pays(place: Path) -> None:
    """It has no wait, so no mean gets longer; that of those beside it gets shorter."""
    (place / "two.yaml").write_text(QUEUES.replace("{name: a, resources: {guaranteed: {vcore: 1}}}", LIMITED))
    (place / "tasks.csv").write_text(TASKS + "0,30,2,root.a,ann\n")
    outcomes = run_trials([trial(place, nodes="1x vcore=2"), trial(place, "two", nodes="1x vcore=2")])
    waits, who, *_ = in_words(outcomes)
    assert "In root.a 1 task more never starts." in who
    ((_, drawn),) = gains.drawings(outcomes)
    assert drawn.elements.count("1 task more never starts") == 2, "by queue and by user"
    assert waits.startswith("With two, waiting times get longer (of 3 tasks that started; 4 with one): ")


def test_what_is_refused_waits_no_shorter(place: Path) -> None:
    """It waits for nothing; of another file it never started."""
    (place / "tasks.csv").write_text("time,run,resources.vcore,queue,user\n0,100,1,root.b,ann\n0,9,9,root.a,ann\n")
    (place / "two.yaml").write_text(QUEUES.replace("{name: a,", "{name: c,"))
    first, other = run_trials([trial(place), trial(place, "two")])
    assert in_words([first, other])[0].startswith("two is worse in tasks refused 0 → 1")


LIMITED = "{name: a, resources: {max: {vcore: 1}}}"


def test_brackets_in_names_are_no_markup(place: Path) -> None:
    """They were left out of the table, or ended it in a traceback."""
    (place / "tasks.csv").write_text(TASKS.replace("bob", "[lab]bob").replace("ann", "[/lab]"))
    (place / "tasks.csv").rename(place / "tasks[old].csv")
    trials = [trial(place, name) for name in ("one", "two")]
    source = replace(trials[0].source, workload=str(place / "tasks[old].csv"))
    status, out, err = ran(*(replace(each, name=f"[{each.name}]", source=source) for each in trials))
    assert (status, err) == (0, "")
    assert all(name in out for name in ("tasks[old].csv", "[one]", "[two]", "[lab]bob", "[/lab]"))


def test_figures_are_not_lost_with_a_file_that_cannot_be_written(place: Path) -> None:
    """It may have taken hours to get them."""
    files = Files(report=str(place / "no" / "report.html"))
    for trials in ([trial(place)], [trial(place), trial(place, "two")]):
        status, out, err = ran(*trials, files=files)
        assert status == 2
        assert "cannot write it down" in err
        assert "3 tasks" in out


def test_a_run_that_fails_leaves_no_record(place: Path) -> None:
    """It would be in the way of the next attempt, which has to name a new file."""
    course = place / "course.db"
    assert ran(trial(place, nodes="no.csv"), files=Files(course=str(course)))[0] == 2
    assert not course.exists()
    assert ran(trial(place), files=Files(course=str(course)))[0] == 0
    assert course.exists()


def test_a_course_that_was_removed_can_be_recorded_again(place: Path) -> None:
    """Under the same name: nothing beside the file says that there was something in it."""
    course = place / "course.db"
    for _ in range(2):
        assert ran(trial(place), files=Files(course=str(course)))[0] == 0
        assert [each.name for each in place.glob("course*")] == ["course.db"]
        course.unlink()


def test_only_whole_draws_are_compared() -> None:
    """After Ctrl-C one of a draw may be whole and the other one not: it is held against no other draw."""
    made = [{"name": name, "interrupted": stopped} for name, stopped in (("a", True), ("b", False), ("a", False))]
    assert list(whole_draws(made, 2)) == []
    whole = [{"name": name, "interrupted": False} for name in "ab"]
    assert list(whole_draws([*made[:2], *whole, made[2]], 2)) == [(1, whole)]


@pytest.mark.parametrize("nodes", ["1x cpu=8,vcore=2", "nodes.csv"])
def test_what_nodes_have_is_said_once(place: Path, nodes: str) -> None:
    """The last one counted, in silence."""
    (place / "nodes.csv").write_text("id,vcore,cpu\nn1,4,8\n")
    status, _, err = ran(trial(place, nodes=str(place / nodes) if nodes.endswith("csv") else nodes))
    assert status == 2
    assert "twice" in err
