"""Files in which something is wrong: it is counted with its line, or said in a sentence, never a traceback."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import UTC
from io import StringIO
from pathlib import Path

import pytest

from fairlead.sim.importing.importing import Account, sample_of, write
from fairlead.sim.importing.mapping import Mapped, MappingError, guessed, said
from fairlead.sim.importing.records import Record, opened
from fairlead.sim.rows import TraceError
from fairlead.sim.workloads.swf import read_log

HEAD, ROW = "JobID,Submit,Elapsed,Cores,Mem\n", "1,2026-05-01 08:00:00,40,4,4G\n"


def account_of(path: Path, *maps: str) -> tuple[Account, Mapped]:
    """What became of the records of a file."""
    records = opened(str(path))
    sample, _ = sample_of(records)
    mapped = guessed(records.columns, sample)
    for text in maps:
        mapped = said(mapped, text, records.columns, sample)
    return write(records, mapped, UTC, StringIO()), mapped


def hints_of(account: Account) -> dict[str, int]:
    """How often each thing is wrong."""
    return {hint: group.count for (_, hint), group in account.errors.items()}


def test_jobs_of_pbs_are_no_steps(tmp_path: Path) -> None:
    """Their keys name the server; steps of Slurm end in a number or a word of its own."""
    jobs = ("4711.pbs01", "12.head.example.org", "7_3.batch", "7.0", "8+1.extern", "9.interactive")
    (tmp_path / "t.csv").write_text(HEAD + "".join(f"{job}{ROW[1:]}" for job in jobs))
    account, _ = account_of(tmp_path / "t.csv")
    assert (account.rows, dict(account.left_out)) == (2, {"steps of jobs that have a row of their own": 4})


def test_numbers_of_a_spreadsheet_are_no_steps(tmp_path: Path) -> None:
    """`1001.0` is what many tools make of 1001 in a column in which something is missing."""
    (tmp_path / "t.csv").write_text(HEAD + "".join(f"{job}{ROW[1:]}" for job in ("1001.0", "1002.0", "", "1003.0")))
    records = opened(str(tmp_path / "t.csv"))
    sample, _ = sample_of(records)
    out = StringIO()
    account = write(records, guessed(records.columns, sample), UTC, out)
    assert (account.rows, dict(account.left_out)) == (4, {})
    assert [row["job"] for row in csv.DictReader(StringIO(out.getvalue()))] == ["1001", "1002", "", "1003"]


@pytest.mark.parametrize(
    ("elapsed", "cores", "memory", "hint"),
    [
        ("40", "5²m", "4G", "is no number"),
        ("40", "1e308", "4G", "is more than can be counted"),
        ("40", "9e15", "9e15G", "is no amount of memory"),
        ("40", "4", "9" * 30 + "G", "is more than can be counted"),
        ("1e300", "4", "4G", "is longer than 30,000 years"),
        ("1e18", "4", "4G", "is longer than 30,000 years"),
        ("9" * 5_000 + ":00:00", "4", "4G", "is longer than 30,000 years"),
        ("1" * 60_000 + " -x", "4", "4G", "is no duration"),
    ],
)
def test_cells_that_nothing_counts_are_counted(
    tmp_path: Path, elapsed: str, cores: str, memory: str, hint: str
) -> None:
    """All other rows are taken."""
    (tmp_path / "t.csv").write_text(f"{HEAD}{ROW * 5}1,2026-05-01 08:00:00,{elapsed},{cores},{memory}\n")
    account, _ = account_of(tmp_path / "t.csv")
    assert (account.rows, hints_of(account)) == (5, {hint: 1})


def test_many_equal_tasks_may_not_ask_for_more_than_can_be_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "Submit,Elapsed,Cores,Count\n2026-05-01,40,4,2\n2026-05-01,40,9000000000000000,9000\n"
    )
    account, _ = account_of(tmp_path / "t.csv")
    assert (account.rows, hints_of(account)) == (1, {"asks for more than can be counted": 1})


def test_a_column_that_says_something_only_far_below_is_read(tmp_path: Path) -> None:
    """Where no text of the sample is an amount, no unit can be told: it is guessed, and a number is no traceback."""
    (tmp_path / "t.csv").write_text(HEAD + ROW.replace("4G", "n/a") * 4_000 + ROW.replace("4G", "16"))
    account, mapped = account_of(tmp_path / "t.csv")
    assert (account.rows, account.largest["memory"]) == (4_001, 16 * 2**20)
    assert not mapped["resources.memory"].unit.known


def test_a_file_of_delimiters_alone_is_said_to_be_no_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",,,\n,,,\n")
    with pytest.raises(TraceError, match="is no table"):
        opened(str(tmp_path / "t.csv"))


def test_what_else_a_cluster_has_is_counted(tmp_path: Path) -> None:
    """`kubectl get all` has services and claims, too; and a quantity may be none."""
    meta = {"name": "a", "namespace": "ml", "creationTimestamp": "2026-05-01T08:00:00Z"}
    ended = [{"state": {"terminated": {"finishedAt": "2026-05-01T09:00:00Z"}}}]
    status = {"startTime": "2026-05-01T08:00:00Z", "containerStatuses": ended, "phase": "Succeeded"}
    pods = [
        {"metadata": meta, "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}, "status": status}
        for cpu in ("2", "two")
    ]
    others = [{"metadata": meta}, {"metadata": meta, "spec": None}, {"metadata": meta, "spec": {"containers": 3}}]
    (tmp_path / "t.json").write_text(json.dumps({"items": [*pods, *others]}))
    account, _ = account_of(tmp_path / "t.json")
    assert account.rows == 1
    assert hints_of(account) == {"is no quantity of cpu": 1, "is not as those of Kubernetes (pods) are": 3}


def test_a_column_may_be_named_as_a_table_names_it(tmp_path: Path) -> None:
    """`resources.cpu` was written as a column that simulations pass over."""
    (tmp_path / "t.csv").write_text(HEAD + ROW)
    _, mapped = account_of(tmp_path / "t.csv", "resources.cpu=Cores")
    assert sorted(name for name in mapped if name.startswith("resources.")) == ["resources.memory", "resources.vcore"]
    with pytest.raises(MappingError, match=r"no 'resources.cpus'; was resources.vcore meant"):
        account_of(tmp_path / "t.csv", "resources.cpus=Cores")


def test_a_large_file_in_utf_8_stays_so_wherever_a_piece_of_it_ends(tmp_path: Path) -> None:
    """The form is told by the first mebibyte, which may end within a letter of two, three or four bytes."""
    for letter in ("я", "語", "😀"):
        for more in range(4):
            text = HEAD.replace("Mem", "Mem,User") + ROW.replace("\n", f",{letter * 9_000}\n") * 60
            (tmp_path / "t.csv").write_text("\n" * more + text, encoding="utf-8")
            assert opened(str(tmp_path / "t.csv")).form == "CSV with commas"


def test_what_is_compressed_and_cut_off_is_said(tmp_path: Path) -> None:
    """A download that broke off; and what is not compressed at all."""
    whole = gzip.compress(("1 0 5 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1\n" * 5_000).encode())
    for number, content in enumerate((whole[: len(whole) // 2], whole[:-9] + b"\0" + whole[-8:], b"plain\n")):
        path = tmp_path / f"{number}.swf.gz"
        path.write_bytes(content)
        for read in (read_log, lambda name: list(opened(name).read())):
            with pytest.raises(TraceError, match=r"swf\.gz:1: is not whole, or not compressed by gzip"):
                read(str(path))


@pytest.mark.parametrize("begin", [b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"])
def test_a_spreadsheet_is_told_from_a_table(tmp_path: Path, begin: bytes) -> None:
    """Its bytes were taken for a table with bars, and shown."""
    (tmp_path / "may.xlsx").write_bytes(begin + b"\x14|\0\n" * 500)
    with pytest.raises(TraceError, match=r"may\.xlsx:1: is a spreadsheet .*: save it as CSV"):
        opened(str(tmp_path / "may.xlsx"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ['{"submit": 1, "user": "jü"}\n{"submit": 2, "user": "bo"}\n', "submit,user\n1,jü\n2,bo\n"]
)
def test_what_is_in_utf_16_is_read_without_a_mark_too(tmp_path: Path, encoding: str, text: str) -> None:
    """JSON lines were no JSON that is understood, or a table of one column with signs between."""
    (tmp_path / "t.txt").write_text(text, encoding=encoding)
    found = opened(str(tmp_path / "t.txt"))
    assert found.columns == ("submit", "user")
    assert [each.cells["user"] for each in found.read() if isinstance(each, Record)] == ["jü", "bo"]
