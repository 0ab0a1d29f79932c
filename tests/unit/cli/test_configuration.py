"""config check, show, default, apply."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.config import file_text

BAD = "partitions:\n  - name: default\n    queues:\n      - name: root\n        wieght: 3\n"


def test_the_default_configuration_passes_its_own_check(run: Callable[..., Any]) -> None:
    """What `default` prints, `check` accepts."""
    text = run("config", "default").stdout
    result = run("config", "check", "-", stdin=text)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "can be used" in result.stderr


def test_the_schema_is_printed_as_json(run: Callable[..., Any]) -> None:
    """For a file beside the queue file."""
    shown = json.loads(run("config", "schema").stdout)
    assert shown["properties"].keys() >= {"partitions", "priorityclasses"}
    assert "submitacl" in shown["$defs"]["queue"]["properties"]


def test_problems_are_listed_with_file_line_and_column(run: Callable[..., Any], tmp_path: Path) -> None:
    """One a line, status 1."""
    file = tmp_path / "q.yaml"
    file.write_text(BAD)
    result = run("config", "check", str(file))
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{file}:5:9: ")
    assert "wieght" in result.stdout
    [problem] = json.loads(run("config", "check", str(file), "--json").stdout)["problems"]
    assert (problem["line"], problem["column"], problem["severity"]) == (5, 9, "error")


def test_show_prints_the_text_as_it_is(service: Any, run: Callable[..., Any]) -> None:
    """So that it can be edited and applied again."""
    service.on("GET", "/config", {"text": "partitions: []", "checksum": "x"})
    assert run("config", "show").stdout == "partitions: []\n"


def test_apply_sends_the_text(service: Any, run: Callable[..., Any], tmp_path: Path) -> None:
    """Byte for byte."""
    service.on("PUT", "/config", {"checksum": "x"})
    file = tmp_path / "q.yaml"
    file.write_text("# ü\npartitions: []\n")
    assert run("config", "apply", str(file)).exit_code == 0
    assert service.sent("PUT", "/config") == [{"text": "# ü\npartitions: []\n"}]


def test_apply_sends_the_text_that_a_service_reads_from_the_file(
    service: Any, run: Callable[..., Any], tmp_path: Path
) -> None:
    """Written on Windows, say: else its status says that the file differs from what was applied from it."""
    service.on("PUT", "/config", {"checksum": "x"})
    file = tmp_path / "q.yaml"
    file.write_bytes(b"\xef\xbb\xbfpartitions: []\r\n")
    assert run("config", "apply", str(file)).exit_code == 0
    assert service.sent("PUT", "/config") == [{"text": file_text(file)}]


def test_to_apply_what_is_in_force_already_changes_nothing(
    service: Any, run: Callable[..., Any], tmp_path: Path
) -> None:
    """It says so, with the version, instead of calling it applied."""
    service.on("PUT", "/config", version(3, in_force=True, changed=False))
    file = tmp_path / "q.yaml"
    file.write_text("partitions: []\n")
    result = run("config", "apply", str(file))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.endswith(f"fairlead: nothing changed: version 3 is in force, and {file} says the same\n")
    service.on("PUT", "/config", version(4, in_force=True, changed=True))
    assert run("config", "apply", str(file)).stderr.endswith(f"fairlead: {file} is applied as version 4\n")


def test_a_file_for_no_machine_is_warned_of(run: Callable[..., Any], tmp_path: Path) -> None:
    """It is good for other uses, so it can be used; a service of a machine would refuse it."""
    file = tmp_path / "q.yaml"
    file.write_text("partitions:\n  - name: gpu\n    queues: [{name: root}]\n")
    result = run("config", "check", str(file))
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{file}:2:11: partitions[0].name: warning: no partition is named default, ")
    assert "rename one to default, or add it" in result.stdout
    assert "with 1 warning" in result.stderr


def test_a_partition_in_which_no_machine_is_is_warned_of(run: Callable[..., Any], tmp_path: Path) -> None:
    """It is shown beside the other, and nothing can go there."""
    file = tmp_path / "q.yaml"
    file.write_text("partitions:\n- {name: default, queues: [{name: a}]}\n- {name: gpu, queues: [{name: b}]}\n")
    result = run("config", "check", str(file))
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{file}:3:10: partitions[1].name: warning: a machine or cluster is in partition ")
    assert "gpu has no nodes and takes no work there" in result.stdout


def test_apply_and_diff_tell_what_has_no_effect(service: Any, run: Callable[..., Any], tmp_path: Path) -> None:
    """A maximum of 0 is none: whoever wanted to stop a queue has to hear it. What is in force again says nothing."""
    service.on("PUT", "/config", {"checksum": "x"})
    service.on("POST", "/config/diff", nothing())
    file = tmp_path / "q.yaml"
    queue = "{name: a, resources: {max: {vcore: 0}}}"
    file.write_text(f"partitions: [{{name: default, queues: [{{name: root, queues: [{queue}]}}]}}]\n")
    for command in ("apply", "diff"):
        result = run("config", command, str(file))
        assert result.exit_code == 0
        assert f"{file}:1:" in result.stderr
        assert "warning: all values are 0" in result.stderr


@pytest.mark.parametrize("text", ["", "\n  \n"])
def test_an_empty_file_cannot_be_used(run: Callable[..., Any], text: str) -> None:
    """As for a service: a truncated file is not the built-in one."""
    result = run("config", "check", "-", stdin=text)
    assert result.exit_code == 1
    assert "the text is empty" in result.stdout


def test_a_refused_configuration_lists_all_errors_with_the_file(
    service: Any, run: Callable[..., Any], refuse: Callable[..., Any], tmp_path: Path
) -> None:
    """Status 1, as for `check`."""
    details = [{"line": 5, "column": 9, "path": "partitions[0]", "message": "unknown key"}]
    service.on("PUT", "/config", refuse(422, "1 error", details=details))
    file = tmp_path / "q.yaml"
    file.write_text(BAD)
    result = run("config", "apply", str(file))
    assert result.exit_code == 1
    assert f"  {file}:5:9: partitions[0]: unknown key" in result.stderr


def version(number: int, **fields: Any) -> dict[str, Any]:
    shown = {"version": number, "at_ms": 0, "who": "ann", "source": "api", "checksum": f"C{number}", "origin": number}
    return shown | {"in_force": False} | fields


def test_the_history_says_who_and_which_was_put_back(service: Any, run: Callable[..., Any]) -> None:
    """The one in force is marked."""
    versions = [version(3, origin=1, source="rollback", in_force=True), version(2), version(1, who="")]
    service.on("GET", "/config/history", {"versions": versions})
    title, newest, *_, oldest = run("config", "history").stdout.splitlines()
    assert title.split() == ["VERSION", "SINCE", "BY", "FROM", "CHECKSUM"]
    assert newest.startswith("3 (= 1)")
    assert newest.endswith("in force")
    assert " - " in oldest, "nobody is a dash"


def test_an_earlier_version_is_shown(service: Any, run: Callable[..., Any]) -> None:
    """By its number."""
    service.on("GET", "/config", lambda request: version(2, text=f"# version {request.query['version']}\n"))
    assert run("config", "show", "--version", "2").stdout == "# version 2\n"


@pytest.mark.parametrize(
    ("file", "status", "said"),
    [
        (None, 0, "none is watched"),
        ({"state": "in-force"}, 0, "is what is in force"),
        ({"state": "differs"}, 0, "fairlead config apply FILE"),
        ({"state": "missing"}, 1, "is gone"),
        (
            {"state": "refused", "refused": "queue root.a would become a parent"},
            1,
            "queue root.a would become a parent",
        ),
    ],
)
def test_the_status_says_how_the_file_stands(
    service: Any, run: Callable[..., Any], file: dict[str, Any] | None, status: int, said: str
) -> None:
    """A file that was refused, or is gone, is exit status 1."""
    full = None if file is None else {"path": "/etc/q.yaml", "refused": "", "problems": []} | file
    service.on("GET", "/config/status", version(1) | {"file": full})
    result = run("config", "status")
    assert result.exit_code == status
    assert said in result.stdout


def test_errors_of_the_watched_file_are_listed(service: Any, run: Callable[..., Any]) -> None:
    """With path, line and column, as a compiler does."""
    problem = {"line": 5, "column": 9, "path": "partitions[0]", "message": "unknown key", "severity": "error"}
    file = {"path": "/etc/q.yaml", "state": "refused", "refused": "", "problems": [problem]}
    service.on("GET", "/config/status", version(1) | {"file": file})
    assert "/etc/q.yaml:5:9: error: partitions[0]: unknown key" in run("config", "status").stdout


def test_a_rollback_names_the_version(service: Any, run: Callable[..., Any]) -> None:
    """Without one the service chooses the one before."""
    service.on("POST", "/config/rollback", version(4, origin=2))
    assert run("config", "rollback").exit_code == 0
    result = run("config", "rollback", "2", "--yes")
    assert "version 2 is in force again as version 4" in result.stderr
    assert service.sent("POST", "/config/rollback") == [{}, {"version": 2}]


def nothing(**fields: Any) -> dict[str, Any]:
    jobs = {name: {"count": 0, "jobs": []} for name in PARTS}
    lists = {name: [] for name in ("partitions_added", "partitions_removed", "settings", "queues", "over")}
    return {"base": "C1", "base_version": 1, "refused": None, "empty": True} | jobs | lists | fields


PARTS = ("would_wait", "would_wait_for_else", "would_start", "would_be_stopped", "would_fail")
JOB = {"key": "7", "user": "ann", "name": "train", "queue": "root.a", "reason": {"sentence": "no room"}}


def test_a_difference_is_told_line_by_line(service: Any, run: Callable[..., Any], tmp_path: Path) -> None:
    """Queues, settings and work, each with its sign; long lists are counted."""
    changes = [{"what": "max", "old": {"cpu": 2}, "new": None}]
    found = nothing(
        empty=False,
        partitions_removed=["gpu"],
        partitions_added=["cpu"],
        settings=[{"partition": "default", "what": "placement_rules", "old": [], "new": [{"name": "user"}]}],
        queues=[
            {"partition": "default", "queue": "root.a", "kind": "changed", "jobs": 3, "changes": changes},
            {"partition": "default", "queue": "root.b", "kind": "draining", "jobs": 2, "changes": []},
            {"partition": "default", "queue": "root.c", "kind": "added", "jobs": 0, "changes": []},
        ],
        over=[
            {
                "partition": "default",
                "queue": "root.a",
                "who": "user ann",
                "what": "maxapplications",
                "used": {"applications": 30},
                "limit": {"applications": 1},
                "count": 30,
                "jobs": [JOB] * 25,
            }
        ],
        would_wait={"count": 1, "jobs": [JOB]},
    )
    service.on("POST", "/config/diff", found)
    file = tmp_path / "q.yaml"
    file.write_text("x")
    lines = run("config", "diff", str(file)).stdout.splitlines()
    assert lines[:8] == [
        "- partition gpu is removed, with all that is in it",
        "+ partition cpu is added",
        '~ placement_rules: [] -> [{"name": "user"}]',
        "~ root.a changes",
        "      max: cpu 2 -> not set",
        "- root.b takes nothing new, and leaves when it is empty, with 2 jobs in it",
        "+ root.c is added",
        "! user ann in root.a would be over its number of running jobs: applications 30 in use of applications 1 "
        "(30 jobs)",
    ]
    assert lines[8] == "      7 train of ann in root.a: no room"
    assert lines[28] == "      and 10 more"
    assert lines[29] == "! 1 job: would start now, and would wait"


def test_no_difference_and_a_refusal_are_said(service: Any, run: Callable[..., Any]) -> None:
    """The refusal is exit status 1."""
    service.on("POST", "/config/diff", nothing())
    result = run("config", "diff", "--version", "1")
    assert (result.exit_code, result.stdout) == (0, "no queue, limit, rule or job would change\n")
    service.on("POST", "/config/diff", nothing(empty=False, refused={"sentence": "work is in the way"}))
    result = run("config", "diff", "--version", "1")
    assert (result.exit_code, result.stdout) == (1, "it would be refused: work is in the way\n")
    assert run("config", "diff").exit_code == 2


def test_what_a_file_would_have_made_of_past_work(
    service: Any, run: Callable[..., Any], refuse: Any, tmp_path: Path
) -> None:
    """The sentences, then the means by queue; by user only where there are several."""
    file = tmp_path / "q.yaml"
    file.write_text("partitions: []\n")
    service.on(
        "POST",
        "/config/compare",
        {
            "since_ms": 0,
            "tasks": 1200,
            "sentences": ["With this file, waiting times get shorter: mean 3 m → 1 m."],
            "queues": [
                {"name": "root.a", "now_ms": 180_000, "then_ms": 60_000},
                {"name": "root.b", "now_ms": None, "then_ms": 1_000},
            ],
            "users": [{"name": "ann", "now_ms": 180_000, "then_ms": 60_000}],
            "notes": ["2 nodes drained: not repeated"],
        },
    )
    result = run("config", "compare", str(file), "--days", "2")
    assert result.exit_code == 0, result.stderr
    assert service.requests[-1].body == {"text": "partitions: []\n", "days": 2}
    lines = result.stdout.splitlines()
    assert lines[0].startswith("1,200 jobs that ran or waited since ")
    assert "waiting times get shorter" in lines[1]
    assert [line.split() for line in lines[4:7]] == [["NOW", "THEN"], ["root.a", "3m", "1m"], ["root.b", "-", "1.0s"]]
    assert lines[7] == "note: 2 nodes drained: not repeated"
    assert json.loads(run("config", "compare", "--version", "3", "--json").stdout)["tasks"] == 1200
    assert run("config", "compare").exit_code == 2
    refusal = {"line": 1, "column": 1, "path": "", "value": "", "message": "no", "severity": "error"}
    service.on("POST", "/config/compare", refuse(422, "invalid", "text: line 1: no", details=[refusal]))
    result = run("config", "compare", str(file))
    assert (result.exit_code, "cannot be used" in result.stderr) == (1, True)
