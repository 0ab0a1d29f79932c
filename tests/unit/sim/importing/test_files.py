"""Files as people really have them, each with the table that comes of it, and what is said of its rows."""

from __future__ import annotations

import csv
import json
from datetime import UTC
from io import StringIO
from pathlib import Path

import pytest

from fairlead.sim.importing.importing import Account, doubts, machines_for, peak, sample_of, write
from fairlead.sim.importing.mapping import Mapped, MappingError, fixed, guessed, said
from fairlead.sim.importing.records import Record, opened
from fairlead.sim.rows import TraceError
from fairlead.sim.workloads.table import read_table

DATA = Path(__file__).parent / "data"


def imported(name: str, *maps: str, sets: tuple[str, ...] = ()) -> tuple[list[dict[str, str]], Account, Mapped, str]:
    """The rows of the table that comes of a file, what became of its records, the mapping, and its form."""
    records = opened(str(DATA / name))
    sample, _ = sample_of(records)
    mapped = guessed(records.columns, sample)
    for text in maps:
        mapped = said(mapped, text, records.columns, sample)
    for text in sets:
        mapped = fixed(mapped, text)
    out = StringIO()
    account = write(records, mapped, UTC, out)
    return list(csv.DictReader(StringIO(out.getvalue()))), account, mapped, records.form


def short(row: dict[str, str]) -> tuple[str, ...]:
    """When it came, how long it ran, cores, memory in GiB, and for whom."""
    memory = int(row.get("resources.memory") or 0) / 2**30
    return row["time"], row["run"], row.get("resources.vcore", ""), f"{memory:g}", row.get("user", "")


DAY = "2026-05-01T08:"


@pytest.mark.parametrize(
    ("name", "form", "rows", "left_out", "wrong"),
    [
        (
            "german.csv",
            "CSV with semicolons, in cp1252",
            [
                (f"{DAY}00:00Z", "2400", "2", "4", "bea"),
                (f"{DAY}10:00Z", "11130", "4", "16", "bea"),
                ("2026-05-03T08:10:00Z", "300", "1", "4", "wim"),
                ("2026-05-13T09:10:00Z", "435", "1", "4", "wim"),
            ],
            1,
            0,
        ),
        (
            "american.csv",
            "CSV with commas",
            [
                (f"{DAY}00:00Z", "10800", "4", "16", "Ann"),
                ("2026-05-13T13:00:00Z", "1200", "500m", "0.5", "Bob"),
            ],
            0,
            1,
        ),
        (
            # Both readings of the dates are in order: those of days that follow each other are meant.
            "portal.tsv",
            "CSV with tabs",
            [("2026-05-04T23:34:00Z", "2400", "8", "32", "ana"), ("2026-05-05T00:10:00Z", "7200", "2", "4", "bo")],
            1,
            1,
        ),
        (
            "spreadsheet.csv",
            "CSV with tabs, in utf-16",
            [
                ("2026-05-01T07:59:59.997Z", "5400", "4", "0", "ann"),
                ("2026-05-01T12:00:00Z", "300", "2", "0", "bob"),
            ],
            0,
            0,
        ),
        (
            "service.jsonl",
            "JSON lines",
            [
                (f"{DAY}00:00Z", "90", "500m", "2", "ann"),
                (f"{DAY}01:00Z", "3600", "4", "16", "bob"),
            ],
            0,
            2,
        ),
        (
            "sacct.txt",
            "CSV with bars",
            [
                (f"{DAY}00:00Z", "7200", "8", "32", "ann"),
                (f"{DAY}01:00Z", "1800", "32", "128", "bob"),
                (f"{DAY}02:00Z", "720", "1", "4", "bob"),
            ],
            2,
            0,
        ),
        (
            "sacct.json",
            "JSON of sacct",
            [(f"{DAY}00:00Z", "7200", "8", "32", "ann"), (f"{DAY}01:00Z", "300", "32", "128", "bob")],
            1,
            0,
        ),
        ("pods.json", "JSON of Kubernetes (pods)", [(f"{DAY}00:00Z", "3600", "2", "4.5", "ml")], 1, 1),
        (
            "yunikorn.json",
            "JSON of YuniKorn",
            [(f"{DAY}00:00Z", "3540", "8", "32", "ann"), (f"{DAY}00:10Z", "3580", "1", "1", "bob")],
            1,
            0,
        ),
        (
            "log.swf",
            "Standard Workload Format",
            [("0", "3600", "4", "4", "3"), ("120", "30", "8", "16", "4")],
            1,
            0,
        ),
        (
            "aligned.txt",
            "columns below dashes",
            [(f"{DAY}00:00Z", "600", "4", "8", "ann"), (f"{DAY}00:30Z", "86400", "2", "16", "bob")],
            0,
            0,
        ),
        (
            "minutes.csv",
            "CSV with commas",
            [
                (f"{DAY}00:00Z", "3600", "4", "8", ""),
                ("2026-05-01T09:00:00Z", "1800", "1", "2", ""),
                ("2026-05-01T10:00:00Z", "600", "1", "2", ""),
                ("2026-05-01T10:00:00Z", "7800", "1", "2", ""),
            ],
            0,
            0,
        ),
        (
            "ragged.csv",
            "CSV with commas",
            [
                ("0", "600", "1", "0", ""),
                ("180", "120", "1", "0", ""),
                ("360", "90", "1", "0", ""),
                ("420", "7500", "1", "0", ""),
                ("480", "3", "1", "0", ""),
            ],
            0,
            4,
        ),
    ],
)
def test_a_file_becomes_a_table(
    name: str, form: str, rows: list[tuple[str, ...]], left_out: int, wrong: int, tmp_path: Path
) -> None:
    """Nothing is said but the file; each record is written, left out or wrong; the simulator reads what is written."""
    found, account, _, told = imported(name)
    assert told == form
    assert [short(row) for row in found] == rows
    assert (sum(account.left_out.values()), account.wrong) == (left_out, wrong)
    table = tmp_path / "tasks.csv"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, found[0].keys())
        writer.writeheader()
        writer.writerows(found)
    assert read_table(str(table)).tasks == account.tasks


def test_columns_without_names_are_said_by_number() -> None:
    found, _, _, form = imported("no-names.tsv", "time=1", "run=2:s", "cpu=3", "user=4")
    assert form == "CSV with tabs, without names of columns"
    assert short(found[0]) == (f"{DAY}00:00Z", "3600", "8", "0", "ann")


def test_further_fields_come_along() -> None:
    """Gangs over nodes, GPUs, arrays, time limits, priorities."""
    rows, _, _, _ = imported("sacct.txt")
    assert [row["resources.gpu"] for row in rows] == ["1", "0", "0"]
    assert [(row["count"], row["gang"], row["time_limit"]) for row in rows][1] == ("2", "yes", "7200")
    assert [row["job"] for row in rows] == ["101", "102", "104"]
    (pod,), _, _, _ = imported("pods.json")
    assert (pod["queue"], pod["job"], pod["priority"], pod["resources.gpu"]) == ("root.ml.train", "train", "100", "2")


def test_a_run_time_says_its_unit_by_its_begin_and_end() -> None:
    """60 between 08:05 and 09:05 are minutes, and that is known; its limit follows, and is a guess."""
    _, _, mapped, _ = imported("minutes.csv")
    assert (mapped["run"].unit.name, mapped["run"].unit.known) == ("min", True)
    assert (mapped["time_limit"].unit.name, mapped["time_limit"].unit.known) == ("min", False)
    assert (mapped["resources.memory"].unit.name, mapped["resources.memory"].unit.known) == ("GB", True)


def test_what_is_wrong_is_counted_by_kind_with_lines() -> None:
    _, account, _, _ = imported("ragged.csv")
    told = {key: (group.count, group.examples) for key, group in account.errors.items()}
    assert told == {
        ("", "has not 4 cells, as the line of names has"): (1, [(3, "")]),
        ("run", "is no duration"): (1, [(4, "ten minutes")]),
        ("run", "is less than nothing"): (1, [(6, "-5")]),
        ("resources.vcore", "is no number"): (1, [(7, "x")]),
    }


def test_what_is_said_counts_more() -> None:
    """Units, columns, what is not to be read, and what is the same for all."""
    rows, _, mapped, _ = imported("german.csv", "run:h", "memory=Mem:MB", "user=", sets=("queue=root.lab", "gpu=1"))
    assert "user" not in mapped
    assert (rows[0]["run"], rows[0]["resources.memory"], rows[0]["queue"]) == ("144000", str(4 * 2**20), "root.lab")
    assert rows[0]["resources.gpu"] == "1"


def test_units_may_have_colons_in_them(tmp_path: Path) -> None:
    """As the forms of dates have, which the page about it shows, and `h:mm`; and so may names of columns."""
    (tmp_path / "t.csv").write_text("Sent: at,Took,CPUs\n05/01/2026 08:00,1:30,4\n05/13/2026 09:00,2:00,4\n")
    maps = ("time=Sent: at:%m/%d/%Y %H:%M", "run=took:h:mm", "cpu=CPUs")
    rows, account, _, _ = imported(str(tmp_path / "t.csv"), *maps)
    assert account.errors == {}
    assert [(row["time"], row["run"]) for row in rows] == [
        ("2026-05-01T08:00:00Z", "5400"),
        ("2026-05-13T09:00:00Z", "7200"),
    ]


@pytest.mark.parametrize("form", ["%d.%m.%Y %H:%m", "%d.%m.%Y %", "%d.%m.%Y %Q"])
def test_what_is_no_form_of_a_date_is_said(form: str) -> None:
    """`%m` for minutes once ended in a traceback."""
    for text in (f"time=Submit date:{form}", f"time:{form}"):
        with pytest.raises(MappingError, match="is no form of a date"):
            imported("german.csv", text)


def test_priorities_that_are_none_of_ours_are_not_read(tmp_path: Path) -> None:
    """Slurm works them out by itself, up to 2**32."""
    head, row = "Submit,Elapsed,CPUs,Priority\n", "2026-05-01T08:00:00,60,1,"
    for number, is_read in ((4_294_901_759, False), (7, True)):
        (tmp_path / "t.csv").write_text(f"{head}{row}{number}\n{row}3\n")
        _, account, mapped, _ = imported(str(tmp_path / "t.csv"))
        assert ("priority" in mapped, account.rows) == (is_read, 2)


def test_that_some_still_ran_is_said(tmp_path: Path) -> None:
    """The time that sacct gives is that so far: in a simulation it ends then."""
    _, account, mapped, _ = imported("sacct.txt")
    assert list(doubts(account, mapped)) == [
        "1 row had not ended: what still ran is taken to run as long as it had so far"
    ]
    (tmp_path / "t.csv").write_text("Submit,Start,End,Elapsed,CPUs,State\n0,0,60,60,1,RUNNING\n1,1,61,60,1,COMPLETED\n")
    _, account, mapped, _ = imported(str(tmp_path / "t.csv"))
    assert (account.rows, list(doubts(account, mapped))) == (2, [])


def test_what_the_portal_does_not_know_is_said_and_accounts_are_queues() -> None:
    """`n/a` cores are an error with its line, not a task of none; where nothing else tells queues, the account does."""
    rows, account, mapped, _ = imported("portal.tsv")
    assert {row["queue"] for row in rows} == {"vision", "nlp"}
    assert not mapped["time"].unit.known, "it is said that the form is guessed"
    [((column, hint), group)] = account.errors.items()
    assert (column, hint, group.examples) == ("CPUs", "does not say how much", [(4, "n/a")])


def test_columns_are_known_by_the_names_that_people_give_them(tmp_path: Path) -> None:
    """With bars between the cells, and units in the names."""
    (tmp_path / "usage.txt").write_text(
        "JobNo|Owner|Dept|Submitted|Began|Finished|NCPU|Mem(GB)|ReqWall(h)|State\n"
        "1|ann|physics|21/10/2026 08:00:00|21/10/2026 08:01:00|21/10/2026 08:11:00|4|8|2|COMPLETED\n"
        "2|bob|web|22/10/2026 08:00:00|22/10/2026 08:01:00|22/10/2026 09:01:00|2|4|12|COMPLETED\n"
    )
    rows, account, mapped, _ = imported(str(tmp_path / "usage.txt"))
    assert {field: source.called() for field, source in mapped.items() if field in ("job", "queue", "time_limit")} == {
        "queue": "Dept",
        "job": "JobNo",
        "time_limit": "ReqWall(h)",
    }
    assert [(row["resources.vcore"], row["queue"], row["time_limit"]) for row in rows] == [
        ("4", "physics", "7200"),
        ("2", "web", "43200"),
    ]
    assert account.errors == {}


DAY_MS, EPOCH_MS = 86_400_000, 1_777_622_400_000


@pytest.mark.parametrize(
    ("submit", "run", "moments", "lasts", "units"),
    [
        ("submit_ms", "run_ms", [i * DAY_MS // 50 for i in range(200)], 60_000, ("ms", "ms")),
        ("submit_us", "run_us", [i * 2_000_000 for i in range(200)], 60_000_000, ("us", "us")),
        ("submit_millis", "duration_millis", [i * 1000 for i in range(100)], 30_000, ("ms", "ms")),
        ("submit_ms", "run_ms", [EPOCH_MS + i * 1000 for i in range(100)], 60_000, ("ms", "ms")),
        ("submit", "run_ms", [EPOCH_MS + i * 1000 for i in range(100)], 60_000, ("ms", "ms")),
        ("submit_s", "run_s", [EPOCH_MS // 1000 + i for i in range(100)], 60, ("s", "s")),
    ],
)
def test_the_unit_in_a_name_counts_more_than_the_size(
    submit: str, run: str, moments: list[int], lasts: int, units: tuple[str, str], tmp_path: Path
) -> None:
    """Days in milliseconds are as large as seconds since 1970; `millis` of a time are no thousandths of a core."""
    lines = [f"{submit},{run},cpus", *(f"{at},{lasts},1" for at in moments)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    _, _, mapped, _ = imported(str(tmp_path / "t.csv"))
    found = mapped["time"].unit, mapped["run"].unit
    assert (tuple(unit.name for unit in found), {unit.known for unit in found}) == (units, {True})


def test_a_unit_in_a_name_that_cannot_be_meant_is_guessed(tmp_path: Path) -> None:
    """Milliseconds since 1970 in `submit_s` would be after 2100 as seconds: their size tells, and that is a guess."""
    lines = ["submit_s,run_s,cpu_millis", *(f"{EPOCH_MS + i * 1000},60,500" for i in range(9))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    rows, _, mapped, _ = imported(str(tmp_path / "t.csv"))
    assert (mapped["time"].unit.name, mapped["time"].unit.known) == ("ms", False)
    assert (rows[0]["time"], rows[0]["resources.vcore"]) == (f"{DAY}00:00Z", "500m")


@pytest.mark.parametrize(("columns", "gpus"), [("num_gpu,gpu_milli", "2"), ("gpu_milli,other", None)])
def test_thousandths_of_a_gpu_are_no_number_of_them(tmp_path: Path, columns: str, gpus: str | None) -> None:
    """As in the trace of a cluster: 460 of one were 460."""
    lines = [f"submit,run_s,cpu_milli,{columns}", *(f"{EPOCH_MS + i * 1000},60,500,2,460" for i in range(9))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    rows, _, _, _ = imported(str(tmp_path / "t.csv"))
    assert rows[0].get("resources.gpu") == gpus


def test_a_log_says_how_long_jobs_waited(tmp_path: Path) -> None:
    """What was in use at once is counted from their starts, and what ran for less than a second did run."""
    path = tmp_path / "log.swf"
    rest = "4 -1 -1 4 200 -1 1 1 1 1 0 1 -1 -1"
    path.write_text(f"1 0 0 100 {rest}\n2 5 95 50 {rest}\n3 20 200 0 {rest}\n4 30 -1 10 {rest}\n")
    records = opened(str(path))
    sample, _ = sample_of(records)
    account = write(records, guessed(records.columns, sample), UTC, StringIO())
    assert list(account.begin) == [0, 100_000, 220_000, 30_000]
    assert peak(account)["vcore"] == 8_000, "the fourth, whose wait is not known, beside the first"


def _log(tmp_path: Path) -> tuple[Mapped, Account, str]:
    """The table of a log in which two of three jobs ran beyond their limits."""
    path, out = tmp_path / "log.swf", StringIO()
    lines = [f"{n} {60 * n} 0 7200 4 -1 -1 4 {3600 if n % 3 else 9000} -1 1 1 1 1 0 1 -1 -1\n" for n in range(1, 30)]
    path.write_text("".join(lines))
    records = opened(str(path))
    mapped = guessed(records.columns, sample_of(records)[0])
    return mapped, write(records, mapped, UTC, out), out.getvalue()


def test_a_log_is_in_seconds(tmp_path: Path) -> None:
    """The format says so, whatever the runs and their limits look like: nothing is guessed."""
    mapped, _, table = _log(tmp_path)
    times = [mapped[field].unit for field in ("time", "start", "run", "time_limit")]
    assert {(unit.name, unit.known) for unit in times} == {("s", True)}
    assert {row["run"] for row in csv.DictReader(StringIO(table))} == {"7200"}


def test_what_ran_beyond_its_limit_is_not_cut_off(tmp_path: Path) -> None:
    """It is as long a run as it was, as in a log that is read as it is; that it looks wrong is said all the same."""
    mapped, account, table = _log(tmp_path)
    assert {row["time_limit"] for row in csv.DictReader(StringIO(table))} == {"7200", "9000"}
    assert next(doubts(account, mapped)).startswith("20 runs are longer than their time limit")


@pytest.mark.parametrize(("different", "is_read"), [(50, True), (51, False)])
def test_priorities_of_which_there_are_very_many_were_worked_out(tmp_path: Path, different: int, is_read: bool) -> None:
    """Slurm makes them of age, size and shares: they would decide the order under each queue file that is tried."""
    lines = ["Submit,Elapsed,CPUs,Priority", *(f"{EPOCH_MS + i * 1000},60,1,{1000 + i % different}" for i in range(99))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    _, _, mapped, _ = imported(str(tmp_path / "t.csv"))
    assert ("priority" in mapped) is is_read


def test_a_pod_asks_for_what_runs_before_and_beside_its_containers_too(tmp_path: Path) -> None:
    """As Kubernetes counts it: the largest that comes first, the sidecars that run by then, the overhead."""

    def one(cpu: str, memory: str, **more: str) -> dict[str, object]:
        return {"resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}

    first = [one("100m", "1Gi", restartPolicy="Always"), one("3", "2Gi"), one("200m", "1Gi", restartPolicy="Always")]
    pod = {
        "metadata": {"name": "p", "namespace": "ml", "creationTimestamp": "2026-05-01T08:00:00Z"},
        "spec": {"containers": [one("1", "2Gi"), one("1", "2Gi")], "initContainers": first, "overhead": {"cpu": "50m"}},
        "status": {
            "startTime": "2026-05-01T08:00:00Z",
            "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-05-01T09:00:00Z"}}}],
        },
    }
    (tmp_path / "pods.json").write_text(json.dumps({"items": [pod]}))
    (row,), _, _, _ = imported(str(tmp_path / "pods.json"))
    assert (row["resources.vcore"], row["resources.memory"]) == ("3150m", str(6 * 2**30))


def test_a_pod_that_runs_has_not_ended_with_one_of_its_containers(tmp_path: Path) -> None:
    """It is left out, as one of which none has ended; it would be as long a run as that of its shortest container."""

    def pod(name: str, phase: str, *states: dict[str, object]) -> dict[str, object]:
        times = {"creationTimestamp": "2026-05-01T08:00:00Z"}
        status = {
            "phase": phase,
            "startTime": "2026-05-01T08:00:00Z",
            "containerStatuses": [{"state": s} for s in states],
        }
        containers = [{"resources": {"requests": {"cpu": "1"}}}]
        return {"metadata": {"name": name, **times}, "spec": {"containers": containers}, "status": status}

    early, late = ({"terminated": {"finishedAt": f"2026-05-01T{hour}:00:00Z"}} for hour in ("09", "10"))
    pods = [pod("runs", "Running", early, {"running": {}}), pod("is-over", "Succeeded", early, late)]
    (tmp_path / "pods.json").write_text(json.dumps({"items": pods}))
    rows, account, _, _ = imported(str(tmp_path / "pods.json"))
    assert [(row["job"], row["run"]) for row in rows] == [("is-over", "7200")]
    assert account.left_out.total() == 1


@pytest.mark.parametrize(("columns", "submitted"), [("Start", ""), ("Submit,Start", "2026-05-01T07:00:00,")])
def test_where_nothing_says_when_jobs_were_submitted_that_is_said(tmp_path: Path, columns: str, submitted: str) -> None:
    """Their starts count instead, and whatever they waited is gone from the work."""
    rows = "".join(f"{submitted}2026-05-01T08:0{n}:00,2026-05-01T09:00:00,1\n" for n in range(2))
    (tmp_path / "t.csv").write_text(f"{columns},End,CPUs\n{rows}")
    _, account, mapped, _ = imported(str(tmp_path / "t.csv"))
    found = [doubt for doubt in doubts(account, mapped) if doubt.startswith("nothing says when they were submitted")]
    assert (account.rows, len(found)) == (2, 0 if submitted else 1)


def test_what_condor_and_pbs_write_is_read(tmp_path: Path) -> None:
    """Their words for when a job came, how long it ran, and on how many nodes."""
    condor = "ClusterId,QDate,JobStartDate,CompletionDate,RemoteWallClockTime,RequestCpus\n"
    rows = "100,1777622400,1777622460,1777626060,3600.0,4\n101,1777622600,undefined,0,0.0,1\n"
    (tmp_path / "condor.csv").write_text(condor + rows)
    (row,), account, _, _ = imported(str(tmp_path / "condor.csv"))
    assert (row["time"], row["run"], account.wrong) == (f"{DAY}00:00Z", "3600", 0)
    head = "Job_Id,qtime,resources_used.walltime,Resource_List.ncpus,Resource_List.nodect\n"
    (tmp_path / "pbs.csv").write_text(head + "4711.pbs01,2026-05-01 08:00:00,01:00:00,16,2\n")
    (row,), *_ = imported(str(tmp_path / "pbs.csv"))
    assert (row["resources.vcore"], row["count"], row["gang"]) == ("8", "2", "yes")


@pytest.mark.parametrize(
    ("column", "cell", "cores"),
    [
        ("AllocCPUS", "80", "80"),
        ("ReqCPUS", "160", "160"),
        ("AllocTRES", '"billing=80,cpu=80"', "80"),
        ("Cores", "240", "240"),
        ("cpu", "500", "500m"),
    ],
)
def test_whole_nodes_of_eighty_cores_are_no_thousandths(tmp_path: Path, column: str, cell: str, cores: str) -> None:
    """Where all jobs have 80, 160 and so on the numbers look like millicores; what batch systems count are cores."""
    (tmp_path / "t.csv").write_text(f"Submit,Elapsed,{column}\n" + f"2026-05-01T08:00:00,3600,{cell}\n" * 3)
    (row, *_), *_ = imported(str(tmp_path / "t.csv"))
    assert row["resources.vcore"] == cores


def test_the_nodes_that_are_proposed_hold_each_gang(tmp_path: Path) -> None:
    """Four times 20 of 32 cores are four nodes, though three have as many cores: all of it would be refused."""
    head = "JobID|Submit|Start|End|AllocCPUS|NNodes|ReqMem\n"
    (tmp_path / "t.txt").write_text(head + "1|2026-05-01T08:00:00|2026-05-01T08:00:00|2026-05-01T09:00:00|80|4|400G\n")
    _, account, _, _ = imported(str(tmp_path / "t.txt"))
    assert machines_for(account) == "4x cpu=32,memory=256Gi"


_ENDED = (
    "user=ann queue=batch qtime=1777622400 start=1777622460 end=1777626060 Resource_List.ncpus=4 "
    "Resource_List.walltime=02:00:00 resources_used.walltime=01:00:00"
)


def test_of_an_accounting_log_of_pbs_the_jobs_that_ended_are_read(tmp_path: Path) -> None:
    """It was taken for a table with semicolons, of which no column says when a task came."""
    log = tmp_path / "20260501"
    lines = ("05/01/2026 08:00:00;Q;1.srv;queue=batch", f"05/01/2026 09:01:00;E;1.srv;{_ENDED}", "05/01/2026 09;L;x")
    log.write_text("".join(f"{line}\n" for line in lines))
    records = opened(str(log))
    (record,) = (each for each in records.read() if isinstance(each, Record))
    assert (records.form, record.line, record.cells["job"]) == ("accounting log of PBS", 2, "1.srv")
    rows, _, mapped, _ = imported(str(log))
    said = {name: source.columns[0] for name, source in mapped.items() if name in ("time", "run", "time_limit")}
    assert said == {"time": "qtime", "run": "resources_used.walltime", "time_limit": "Resource_List.walltime"}
    assert [(row["run"], row["resources.vcore"], row["time_limit"]) for row in rows] == [("3600", "4", "7200")]
    log.write_text(f"{lines[0]}\n")
    with pytest.raises(TraceError, match="in which no job ended"):
        opened(str(log))
