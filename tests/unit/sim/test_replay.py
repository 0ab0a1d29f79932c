"""Replaying a trace from its files, and the report."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlead.sim.replay import run

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,4000,8192,1,T4\nn2,4000,8192,0,\n"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"


def task(name: str, at: int, end: int, cpu: int = 2000, spec: str = "", gpu: str = "0,0") -> str:
    """A line of the task file."""
    return f"{name},{cpu},1024,{gpu},{spec},LS,Running,{at},{end},{at}"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Two machines; five tasks of which one never fits."""
    (tmp_path / "nodes.csv").write_text(NODES)
    tasks = [task(f"t{i}", i, 100 + i) for i in range(3)]
    tasks += [task("big", 5, 9, cpu=9000), task("gpu", 6, 106, spec="T4", gpu="1,500")]
    (tmp_path / "tasks.csv").write_text("\n".join([HEAD, *tasks]) + "\n")
    return str(tmp_path / "nodes.csv"), str(tmp_path / "tasks.csv")


def ran(files: tuple[str, str], **options: Any) -> tuple[int, str, str]:
    """Exit status, output and error output."""
    out, err = io.StringIO(), io.StringIO()
    return run(*files, out, err, **options), out.getvalue(), err.getvalue()


def test_the_report_adds_up(files: tuple[str, str]) -> None:
    """For people and for programs alike."""
    status, text, err = ran(files)
    assert (status, err) == (0, "")
    assert "submitted 5 = completed 4 + running 0 + waiting 1 + refused 0\n" in text
    assert "still waiting: 1" in text
    assert "big: needs vcore 9 on one node; the largest of" in text
    assert "1 tasks name GPU models" in text
    report = json.loads(ran(files, as_json=True)[1])
    assert report["totals"] == {"submitted": 5, "completed": 4, "running": 0, "waiting": 1, "refused": 0}
    assert report["adds_up"] is True
    assert report["use"]["vcore"]["peak"] == 0.75
    assert report["waits"]["count"] == 4


def test_until_says_what_runs_and_what_has_not_come(files: tuple[str, str]) -> None:
    """A replay may stop in the middle of the trace."""
    report = json.loads(ran(files, until_s=2, as_json=True)[1])
    assert report["totals"] == {"submitted": 3, "completed": 0, "running": 3, "waiting": 0, "refused": 0}
    assert report["not_submitted"] == 2


def test_the_digest_is_that_of_the_decisions_file(files: tuple[str, str], tmp_path: Path) -> None:
    """Each decision is a line, and the digest covers all of them."""
    path = tmp_path / "decisions"
    report = json.loads(ran(files, decisions=str(path), as_json=True)[1])
    text = path.read_bytes()
    assert hashlib.sha256(text).hexdigest() == report["digest"]
    assert len(text.splitlines()) == report["decisions"]
    assert b"allocated application=gpu key=gpu node=n1" in text


def test_the_digest_does_not_depend_on_the_hash_seed(files: tuple[str, str]) -> None:
    """Two processes with different seeds decide the same, byte for byte."""
    code = "import sys; from fairlead.sim.replay import run; sys.exit(run(*sys.argv[1:], as_json=True))"
    digests = set()
    for seed in ("0", "4711"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code, *files], env=environment, capture_output=True, check=True)
        digests.add(json.loads(done.stdout)["digest"])
    assert len(digests) == 1


def test_a_queue_file_replaces_the_built_in_one(files: tuple[str, str], tmp_path: Path) -> None:
    """Its limits hold; a broken one is an error."""
    config = tmp_path / "queues.yaml"
    config.write_text(
        "partitions:\n- name: default\n  queues:\n  - name: root\n    submitacl: '*'\n    queues:\n"
        "    - name: ls\n      resources: {max: {vcore: 2}}\n"
    )
    report = json.loads(ran(files, config=str(config), as_json=True)[1])
    assert report["use"]["vcore"]["peak"] == 0.25
    config.write_text("partitions: [{name: default}]\n")
    status, _, err = ran(files, config=str(config))
    assert (status, err.startswith("cannot replay the trace: ")) == (2, True)


def test_bad_rows_stop_or_are_counted(files: tuple[str, str]) -> None:
    """`skip_bad` leaves them out and says so."""
    path = Path(files[1])
    path.write_text(path.read_text() + "odd,x,1,0,0,,LS,Running,1,2,1\n")
    status, _, err = ran(files)
    assert status == 2
    assert err == f"cannot replay the trace: {path}:7: column cpu_milli: 'x': must be a whole number, 0 or more\n"
    status, text, _ = ran(files, skip_bad=True)
    assert status == 0
    assert f"bad rows left out: 1; the first: {path}:7" in text


def test_an_empty_trace_is_no_error(files: tuple[str, str]) -> None:
    """Nothing happened."""
    Path(files[1]).write_text(HEAD + "\n")
    status, text, _ = ran(files)
    assert status == 0
    assert "submitted 0 = completed 0" in text
    assert "nothing has started" in text


def test_a_missing_file_is_an_error(files: tuple[str, str]) -> None:
    """In one sentence."""
    status, _, err = ran((files[0], files[1] + ".none"))
    assert status == 2
    assert "No such file" in err


def test_ctrl_c_prints_what_there_is(files: tuple[str, str]) -> None:
    """The first one stops between two moments; the status says so, and the old handler is back."""

    class Nosy(io.StringIO):
        """A log of decisions that presses Ctrl-C at the first start."""

        def write(self, text: str) -> int:
            """Once is enough."""
            if " allocated " in text:
                signal.raise_signal(signal.SIGINT)
            return super().write(text)

    from fairlead.sim.replay import replay, report_text
    from fairlead.sim.trace import read_nodes, read_tasks

    before = signal.getsignal(signal.SIGINT)
    report = replay(read_nodes(files[0]), read_tasks(files[1]), None, Nosy(), io.StringIO())
    assert report["interrupted"]
    assert report["adds_up"]
    assert (report["totals"]["running"], report["not_submitted"]) == (1, 4)
    assert signal.getsignal(signal.SIGINT) is before
    assert "interrupted" in report_text(report | {"skipped_rows": []})


def test_progress_is_shown_where_it_is_wanted(files: tuple[str, str]) -> None:
    """On the error output; not when that is no terminal."""
    assert "replaying" in ran(files, progress=True)[2]
    assert ran(files)[2] == ""
