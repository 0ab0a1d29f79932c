"""Files in which something is wrong: it is counted with its line, or said in a sentence, never a traceback."""

from __future__ import annotations

from datetime import UTC
from io import StringIO
from pathlib import Path

import pytest

from fairlead.sim.importing.importing import Account, sample_of, write
from fairlead.sim.importing.mapping import Mapped, MappingError, guessed, said
from fairlead.sim.importing.records import opened

HEAD, ROW = "JobID,Submit,Elapsed,Cores,Mem\n", "1,2026-05-01 08:00:00,40,4,4G\n"


def account_of(path: Path, *maps: str) -> tuple[Account, Mapped]:
    """What became of the records of a file."""
    records = opened(str(path))
    sample, _ = sample_of(records)
    mapped = guessed(records.columns, sample)
    for text in maps:
        mapped = said(mapped, text, records.columns, sample)
    return write(records, mapped, UTC, StringIO()), mapped


def test_jobs_of_pbs_are_no_steps(tmp_path: Path) -> None:
    """Their keys name the server; steps of Slurm end in a number or a word of its own."""
    jobs = ("4711.pbs01", "12.head.example.org", "7_3.batch", "7.0", "8+1.extern", "9.interactive")
    (tmp_path / "t.csv").write_text(HEAD + "".join(f"{job}{ROW[1:]}" for job in jobs))
    account, _ = account_of(tmp_path / "t.csv")
    assert (account.rows, dict(account.left_out)) == (2, {"steps of jobs that have a row of their own": 4})


def test_a_column_may_be_named_as_a_table_names_it(tmp_path: Path) -> None:
    """`resources.cpu` was written as a column that simulations pass over."""
    (tmp_path / "t.csv").write_text(HEAD + ROW)
    _, mapped = account_of(tmp_path / "t.csv", "resources.cpu=Cores")
    assert sorted(name for name in mapped if name.startswith("resources.")) == ["resources.memory", "resources.vcore"]
    with pytest.raises(MappingError, match=r"no 'resources.cpus'; was resources.vcore meant"):
        account_of(tmp_path / "t.csv", "resources.cpus=Cores")
