"""sim import: what is shown and asked, and when nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import importing

HEAD = "Submit;Elapsed;CPUs;Mem;Queue\n"
ROWS = "".join(f"2026-05-01 08:{n:02}:00;{10 + n};2;4;batch\n" for n in range(20))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "jobs.csv"
    file.write_text(HEAD + ROWS)
    return file


def test_nothing_is_written_unasked(run: Callable[..., Any], table: Path) -> None:
    """Where nobody can be asked the guess is shown, and how to agree."""
    result = run("sim", "import", str(table))
    assert result.exit_code == 1
    assert "say --yes if this is right" in result.stderr
    assert "10 = 10s" in result.stdout, "a guess is shown with what it would mean"
    assert "* guessed" in result.stdout
    assert not Path("tasks.csv").exists()


def test_yes_writes_and_says_what_comes_next(run: Callable[..., Any], table: Path) -> None:
    """The words that it proposes are a command that runs."""
    result = run("sim", "import", str(table), "--yes", "--map", "run:min", "--queue-file", "queues.yaml")
    assert result.exit_code == 0, result.stderr
    assert "tasks.csv: 20 tasks in 20 rows, from 2026-05-01 to 2026-05-01, in 1 queue\n" in result.stdout
    words = result.stdout.splitlines()[-1].removeprefix("next: fairlead ")
    assert words == "sim run --workload tasks.csv --nodes '1x cpu=32,memory=64Gi'"
    again = run("sim", "run", "--workload", "tasks.csv", "--nodes", "1x cpu=32,memory=64Gi", "--config", "queues.yaml")
    assert "submitted 20 = waiting 0 + running 0 + completed 20" in again.stdout


def test_what_comes_next_can_be_typed(run: Callable[..., Any], table: Path) -> None:
    result = run("sim", "import", str(table), "--yes", "--out", "my work.csv")
    assert "next: fairlead sim run --workload 'my work.csv' --nodes " in result.stdout


def test_a_person_corrects_the_guess(run: Callable[..., Any], table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed is a correction until it is yes; nonsense is said and asked again."""
    monkeypatch.setattr(importing, "_is_terminal", lambda: True)
    result = run("sim", "import", str(table), stdin="run=Elapsd\nrun:min\nyes\n")
    assert result.exit_code == 0, result.stderr
    assert "there is no column 'Elapsd'; was 'Elapsed' meant?" in result.stdout
    assert Path("tasks.csv").read_text().splitlines()[1] == "2026-05-01T08:00:00Z,600,2,4294967296,batch"
    Path("tasks.csv").unlink()
    assert run("sim", "import", str(table), stdin="no\n").exit_code == 1
    assert not Path("tasks.csv").exists()


def test_a_column_who_is_the_user(run: Callable[..., Any], table: Path) -> None:
    table.write_text("Who;" + HEAD + "".join(f"bea;{row}\n" for row in ROWS.splitlines()))
    assert run("sim", "import", str(table), "--yes").exit_code == 0
    assert Path("tasks.csv").read_text().splitlines()[1].endswith(",batch,bea")


def test_dates_of_one_table_have_one_form(run: Callable[..., Any], table: Path) -> None:
    """Whether the day or the month comes first only the ends tell; so it is the same in the other columns."""
    rows = [f"05/{n:02}/2026 10:00;05/{n:02}/2026 10:00;05/{n + 12}/2026 10:00;2" for n in range(12, 0, -1)]
    table.write_text("\n".join(["Submit;Started;Ended;CPUs", *rows]) + "\n")
    result = run("sim", "import", str(table), "--yes")
    assert result.exit_code == 0, result.stdout
    assert "wrong" not in result.stdout
    assert Path("tasks.csv").read_text().splitlines()[1] == "2026-05-12T10:00:00Z,1036800,2"


def test_many_wrong_rows_write_nothing(run: Callable[..., Any], table: Path) -> None:
    """One kind, with its count and examples; with --skip-bad the others are written."""
    table.write_text(HEAD + ROWS + "2026-05-01 09:00:00;soon;2;4;batch\n" * 3)
    result = run("sim", "import", str(table), "--yes")
    assert result.exit_code == 1
    told = "wrong: 3 (Elapsed is no duration): line 22 ('soon'), line 23 ('soon'), line 24 ('soon')"
    assert told in result.stdout
    assert not Path("tasks.csv").exists()
    assert not Path("tasks.csv.part").exists()
    assert run("sim", "import", str(table), "--yes", "--skip-bad").exit_code == 0
    assert len(Path("tasks.csv").read_text().splitlines()) == 21


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--map", "runtime=Elapsed"), "there is no field 'runtime'; was run meant?"),
        (("--map", "walltime=Elapsed"), "there is no field 'walltime'; was time_limit meant?"),
        (("--map", "colour=Elapsed"), "there is no field 'colour': the fields are time"),
        (("--map", "run=Queue"), "column 'Queue' does not hold a duration: 'batch'"),
        (("--map", "run:weeks"), "'weeks' is no unit of a duration; write one of ns, us, ms, s, min"),
        (("--map", "run"), "write FIELD=COLUMN"),
        (("--set", "queue"), "write FIELD=VALUE"),
        (("--out", "may.txt"), "give one that ends in .csv"),
        (("--zone", "Mars/Base"), "there is no zone 'Mars/Base'"),
    ],
)
def test_what_is_said_wrong_is_told(run: Callable[..., Any], table: Path, words: tuple[str, ...], said: str) -> None:
    """A wrong command line, with what would be right."""
    result = run("sim", "import", str(table), "--yes", *words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_what_looks_wrong_is_said(run: Callable[..., Any], table: Path) -> None:
    """It can be read, and is most likely not meant so."""
    result = run("sim", "import", str(table), "--yes", "--map", "memory:B", "--map", "run:ms")
    assert "look at this: half of all rows ask for 4 bytes of memory or less: is B its unit?" in result.stdout
    assert "look at this: half of all runs last 0.0s or less: is that so?" in result.stdout
    run("sim", "run", "--workload", "tasks.csv", "--nodes", "1x cpu=8,memory=64Gi")
    simulated = run("sim", "run", "--workload", "tasks.csv", "--nodes", "1x cpu=8,memory=64Gi").stdout
    assert "memory is in use to 0.0% at most: is the workload in its unit; 4 means 4 bytes" in simulated


def test_standard_input_can_be_read(run: Callable[..., Any], table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the table can go to standard output, alone there."""
    result = run("sim", "import", "-", "--yes", "--out", "-", "--zone", "Europe/Berlin", stdin=table.read_text())
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[:2] == [
        "time,run,resources.vcore,resources.memory,queue",
        "2026-05-01T06:00:00Z,10,2,4294967296,batch",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("just some words\nand more of them here\n", "is no table"),
        ("[1, 2]", "holds no objects"),
        ("{", "is not JSON"),
    ],
)
def test_what_is_no_table_is_said(run: Callable[..., Any], table: Path, text: str, said: str) -> None:
    table.write_text(text)
    result = run("sim", "import", str(table), "--yes")
    assert (result.exit_code, said in result.stderr) == (1, True), result.stderr


def test_what_a_file_says_is_shown_and_not_obeyed(run: Callable[..., Any], table: Path) -> None:
    """A name of a column may hold what would move the cursor of a terminal."""
    table.write_text("submit,run,odd\x1b[2J,user\n1,2,3,a\x1bnn\n")
    result = run("sim", "import", str(table), "--yes")
    assert "\x1b" not in result.stdout
    assert r"odd\x1b[2J" in result.stdout


def test_what_was_in_use_is_only_said_to_be_recorded_where_it_is(run: Callable[..., Any], table: Path) -> None:
    """Without starts each is taken to have begun when it came, which is more than there ever was."""
    assert "at most, had each begun when it came: cpu 2," in run("sim", "import", str(table), "--yes").stdout
    table.write_text("Submit,Start,End,CPUs\n" + "2026-05-01T08:00:00,2026-05-01T08:01:00,2026-05-01T09:00:00,2\n" * 2)
    assert "at most, as recorded: cpu 4" in run("sim", "import", str(table), "--yes").stdout


def test_a_queue_file_that_cannot_be_written_is_said_to_be_that(run: Callable[..., Any], table: Path) -> None:
    """The table is there: it was said that nothing could be imported."""
    result = run("sim", "import", str(table), "--yes", "--queue-file", "nowhere/queues.yaml")
    assert result.exit_code != 0
    assert "tasks.csv is written, and its queue file is not: nowhere/queues.yaml: cannot be opened" in result.stderr
    assert Path("tasks.csv").exists()
