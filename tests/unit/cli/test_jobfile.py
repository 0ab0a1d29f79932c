"""Descriptions of work, from files and options."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fairlead.cli.app import USAGE, Failure
from fairlead.cli.submit import Described, as_failure_of, describe, read_jobs, read_text
from fairlead.client import Refused
from fairlead.wire.cluster import Problem

JOB: dict[str, Any] = {"command": ["echo", "hi"]}


def refused(name: str, text: str, defaults: dict[str, Any] | None = None) -> str:
    with pytest.raises(Failure) as caught:
        read_jobs(name, text, defaults or {})
    assert caught.value.status == USAGE
    return caught.value.message


def test_a_full_description_becomes_what_the_service_takes() -> None:
    """Amounts in the smallest unit, times in milliseconds."""
    entry = {
        "command": "python 'my script.py' --x",
        "name": "n",
        "queue": "root.a",
        "priority": -3,
        "cpu": 0.5,
        "memory": "1Gi",
        "gpu": 2,
        "resources": {"licence": 1},
        "env": {"SEED": 1},
        "cwd": "/tmp",
        "grace": 5,
        "time_limit": "1h",
        "tags": {"a": "b"},
    }
    assert describe(entry, "x").body == {
        "command": ["python", "my script.py", "--x"],
        "name": "n",
        "queue": "root.a",
        "priority": -3,
        "resources": {"cpu": 0.5, "memory": 2**30, "gpu": 2, "licence": 1},
        "env": {"SEED": "1"},
        "cwd": "/tmp",
        "grace_ms": 5000,
        "time_limit_ms": 3_600_000,
        "tags": {"a": "b"},
    }


def test_the_programs_name_is_the_default() -> None:
    """What is not said of resources, the queue says."""
    assert describe({"command": ["/usr/bin/env", "x"]}, "x").body == {
        "command": ["/usr/bin/env", "x"],
        "name": "env",
    }
    said = describe({"command": ["x"], "memory": "1Gi", "cpu": 0}, "x").body
    assert said["resources"] == {"cpu": 0, "memory": 2**30}


def test_lines_of_json_are_read_in_order_and_blank_ones_skipped() -> None:
    """Each with its place."""
    jobs = read_jobs("w.jsonl", '{"command":["a"]}\n\n{"command":["b"]}\n', {})
    assert [(w.where, w.body["command"]) for w in jobs] == [("w.jsonl:1", ["a"]), ("w.jsonl:3", ["b"])]


@pytest.mark.parametrize("name", ["w.json", "w.yaml", "w.yml"])
@pytest.mark.parametrize("shape", [[JOB, JOB], {"jobs": [JOB, JOB]}])
def test_an_array_may_stand_alone_or_under_jobs(name: str, shape: Any) -> None:
    """In JSON and in YAML."""
    assert len(read_jobs(name, json.dumps(shape), {})) == 2


def test_defaults_hold_for_jobs_that_do_not_say() -> None:
    """And for no others."""
    first, second = read_jobs("w.json", json.dumps([JOB, {**JOB, "queue": "root.b"}]), {"queue": "root.a"})
    assert (first.body["queue"], second.body["queue"]) == ("root.a", "root.b")


def test_an_unknown_field_is_named_with_its_line_and_the_one_meant() -> None:
    """All fields are listed, too."""
    said = refused("w.jsonl", '{"command":["a"]}\n{"command":["a"],"prioritty":1}')
    assert said.startswith("w.jsonl:2: there is no field 'prioritty' (did you mean 'priority'?)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "w.jsonl:1:2: is not JSON"),
        ("[1]", "w.jsonl:1: a job is an object"),
        ('{"command":["a"],"command":["b"]}', "w.jsonl:1: command is given twice"),
        ("{}", "w.jsonl:1: command: is missing"),
        ('{"command":[]}', "w.jsonl:1: command: is empty"),
        ('{"command":[1]}', "w.jsonl:1: command: is missing or not a list of texts"),
        ('{"command":"a \'b"}', "w.jsonl:1: command: No closing quotation"),
        ('{"command":["a\\u0000"]}', "w.jsonl:1: command: no part of it can have a NUL"),
        ('{"command":["a"],"priority":true}', "w.jsonl:1: priority: True is not a whole number"),
        ('{"command":["a"],"priority":3000000000}', "w.jsonl:1: priority: 3000000000 is not"),
        ('{"command":["a"],"cpu":"x"}', "w.jsonl:1: cpu: 'x' is not an amount"),
        ('{"command":["a"],"cpu":false}', "w.jsonl:1: cpu: must be a text or a number"),
        ('{"command":["a"],"cpu":0}', "w.jsonl:1: cpu: the job asks for nothing"),
        ('{"command":["a"],"gpu":-1}', "w.jsonl:1: gpu: -1 is not a number of devices"),
        ('{"command":["a"],"env":["A=1"]}', "w.jsonl:1: env: must be an object"),
        ('{"command":["a"],"time_limit":"soon"}', "w.jsonl:1: time_limit: 'soon' is not a duration"),
        ('{"command":["a"],"time_limit":"0"}', "w.jsonl:1: time_limit: 0 would end it at once"),
        ('{"command":["a"],"resources":{"gpu":1},"gpu":1}', "w.jsonl:1: resource: gpu is given twice"),
        ("", "w.jsonl: there is no job in it"),
    ],
)
def test_each_mistake_is_said_with_its_place(text: str, said: str) -> None:
    """File, line and field."""
    assert refused("w.jsonl", text).startswith(said)


def test_dates_and_clocks_need_no_quotes_in_yaml() -> None:
    """Neither becomes a date or a number of base 60: they are the texts that stand there; numbers stay numbers."""
    text = "command: 'true'\nbegin: {}\npriority: -3\ncpu: 0.5\n"
    text += "env: {{DAY: 2026-12-31, AT: 12:30, N: 1.5, X: 12:30:00.5}}\n"
    [day] = read_jobs("w.yaml", text.format("2099-12-31"), {})
    [clock] = read_jobs("w.yaml", text.format("16:00"), {})
    assert day.body["begin_at_ms"] == describe(JOB | {"begin": "2099-12-31"}, "x").body["begin_at_ms"]
    assert clock.body["begin_at_ms"] == describe(JOB | {"begin": "16:00"}, "x").body["begin_at_ms"]
    assert (day.body["priority"], day.body["resources"]) == (-3, {"cpu": 0.5})
    assert day.body["env"] == {"DAY": "2026-12-31", "AT": "12:30", "N": "1.5", "X": "12:30:00.5"}


def test_a_number_in_yaml_stays_as_it_is_written() -> None:
    """Where a text is wanted; an amount is read by its own rules."""
    text = "command: 'true'\numask: 077\ncpu: 1.50\nname: 0123\nenv: {V: 1.10, ZIP: 01234, N: 1_000, X: 0x1F, P: +5}\n"
    [job] = read_jobs("w.yaml", text, {})
    assert job.body["env"] == {"V": "1.10", "ZIP": "01234", "N": "1_000", "X": "0x1F", "P": "+5"}
    assert (job.body["umask"], job.body["resources"], job.body["name"]) == ("077", {"cpu": 1.5}, "0123")


def test_a_mistake_in_yaml_is_said_with_line_and_column() -> None:
    """As the parser saw it."""
    assert refused("w.yaml", "- command: [a\n- b: ]").startswith("w.yaml:2:")
    twice = "- command: a\n  env: {A: 1, B: 2, A: 3}\n"
    assert refused("w.yaml", twice) == "w.yaml:2:21: is not YAML: A is given twice; give it once"
    merged = "- &all {command: a, cpu: 1}\n- {<<: *all, cpu: 2}\n"
    assert [job.body["resources"] for job in read_jobs("w.yaml", merged, {})] == [{"cpu": 1.0}, {"cpu": 2.0}]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Any) -> None:
    """Missing, a directory, not text."""
    (tmp_path / "bad").write_bytes(b"\xff\xfe")
    for name, said in (("none", "No such file"), (".", "Is a directory"), ("bad", "not UTF-8")):
        with pytest.raises(Failure, match=said):
            read_text(str(tmp_path / name))


def test_a_refusal_of_the_service_is_told_with_the_place_in_the_file() -> None:
    """Not with the place in the request."""
    jobs = [Described("w.jsonl:1"), Described("w.jsonl:4")]
    said = {"type": "urn:fairlead:problem:invalid", "title": "", "status": 422, "code": "invalid"}
    refusal = Refused(Problem(**said, detail="there is no queue root.x", field="jobs[1].queue"))
    assert as_failure_of(jobs, refusal, []).message == "w.jsonl:4: queue: there is no queue root.x"
    taken = [str(number) for number in range(1, 5_001)]
    assert "(5000 jobs before it are submitted already: 1 to 5000)" in as_failure_of(jobs, refusal, taken).message


def test_every_job_with_a_mistake_is_named() -> None:
    """At once, each with its place; of very many the first."""
    text = '{"command": "true"}\nnot json\n{"command": ""}\n\n{"cmd": "x"}\n{"command": "x", "cpu": "lots"}\n'
    with pytest.raises(Failure) as found:
        read_jobs("j.jsonl", text, {})
    assert found.value.status == 2
    assert found.value.message == "j.jsonl: 4 of 5 jobs make no sense; nothing was submitted"
    assert [line.split(": ")[0] for line in found.value.details] == [
        "j.jsonl:2:1",
        "j.jsonl:3",
        "j.jsonl:5",
        "j.jsonl:6",
    ]
    with pytest.raises(Failure) as found:
        read_jobs("j.jsonl", "x\n" * 60, {})
    assert (len(found.value.details), found.value.details[-1]) == (51, "and 10 more")
    with pytest.raises(Failure) as found:
        read_jobs("j.yaml", "- command: x\n- 3\n- cmd: y\n", {})
    assert [line.split(": ")[1] for line in found.value.details] == ["job 2", "job 3"]


@pytest.mark.parametrize("break_", ["\u2028", "\u2029", "\x85"])
def test_a_line_of_a_file_ends_where_json_lines_end(break_: str) -> None:
    """A text may have in it what only other programs take for the end of a line; `jq` writes it as it is."""
    text = f'{{"command": ["a", "x{break_}y"]}}\n{{"command": ["b"]}}\r\n'
    assert [job.body["command"] for job in read_jobs("jobs.jsonl", text, {"cwd": "/"})] == [["a", f"x{break_}y"], ["b"]]


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("jobs.json", "[" * 100_000, "jobs.json: is nested too deep"),
        ("jobs.jsonl", '{"command": ["a"], "env": ' + "[" * 100_000, "jobs.jsonl:1: is nested too deep"),
        ("jobs.yaml", "[" * 1_200, "jobs.yaml: is nested too deep"),
        ("jobs.jsonl", '{"command": ["a"], "priority": ' + "1" * 5_000 + "}", "jobs.jsonl:1: has a number"),
        ("jobs.jsonl", '{"command": ["a", "\\ud800"]}', "jobs.jsonl:1: command: has half of a surrogate pair"),
        ("jobs.jsonl", '{"command": ["a"], "env": {"A": "\\udcff"}}', "jobs.jsonl:1: env: has half of a surrogate"),
    ],
)
def test_what_python_itself_cannot_take_is_said_with_its_place(path: str, text: str, said: str) -> None:
    """And not with a traceback."""
    with pytest.raises(Failure, match=re.escape(said)):
        read_jobs(path, text, {"cwd": "/"})
