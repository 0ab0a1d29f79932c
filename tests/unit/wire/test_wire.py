"""The shapes that travel: what they may import, and what requests are refused for."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies

import fairlead.wire
from fairlead.core.books import retries
from fairlead.core.model import resources, specs
from fairlead.kubernetes.objects import Pod, PodStatus
from fairlead.kubernetes.translate.pods import how_ended
from fairlead.local import history_records
from fairlead.local.job_states import State
from fairlead.policy.queue_choice import dynamic
from fairlead.runtime import Refusal
from fairlead.service.http.errors import read_otherwise
from fairlead.times import moment
from fairlead.wire import fields, jobs, orders, windows
from fairlead.wire.fields import Request, Shape
from fairlead.wire.jobs import BEGIN_MAX_MS, LONGEST_MS

MODULES = [f"fairlead.wire.{each.name}" for each in pkgutil.iter_modules(fairlead.wire.__path__)]


def shapes() -> list[type[Shape]]:
    found = {each for name in MODULES for each in vars(importlib.import_module(name)).values() if _is_shape(each)}
    return sorted(found, key=lambda shape: shape.__name__)


def _is_shape(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, Shape) and each not in (Shape, Request)


def test_the_wire_imports_nothing_heavy() -> None:
    """A command that decodes with it starts at once."""
    code = f"import sys\nfor name in {MODULES}: __import__(name)\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pydantic", "fastapi", "yaml", "asyncio"} & set(loaded)
    ours = {name for name in loaded if name.startswith("fairlead.")}
    assert {name for name in ours if not name.startswith("fairlead.wire")} <= {"fairlead.version"}


def test_its_numbers_are_those_of_the_core() -> None:
    """They are written twice, since the core imports NumPy."""
    assert jobs.BACKOFF_MAX_MS == retries.BACKOFF_MAX_MS
    assert jobs.GRACE_MS == history_records.DEFAULT_GRACE_MS
    of_pods = {how_ended(Pod(status=PodStatus(phase=phase))) for phase in ("Succeeded", "Failed", "Running")}
    assert set(jobs.JobState.__args__) == {state.value for state in State} | of_pods  # type: ignore[attr-defined]
    for wanted, (low, high) in (
        (fields.Priority, (specs.PRIORITY_MIN, specs.PRIORITY_MAX)),
        (fields.Whole, (0, resources.INT64_MAX)),
    ):
        assert msgspec.convert(low, wanted) == low
        assert msgspec.convert(high, wanted) == high
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(low - 1, wanted)
    tags = {specs.TAG_FORCE_CREATE, specs.TAG_CREATION_TIME, specs.TAG_APP_CREATION_TIME}
    tags |= {dynamic.TAG_QUOTA, dynamic.TAG_GUARANTEED, dynamic.TAG_MAX_APPLICATIONS}
    assert {tag.lower() for tag in tags} == fields._RESERVED_TAGS


def test_no_two_shapes_have_one_name() -> None:
    """They would be one in the OpenAPI document."""
    names = [shape.__name__ for shape in shapes()]
    assert sorted(set(names)) == names


@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.__name__)
def test_each_shape_says_what_it_is(shape: type[Shape]) -> None:
    """A docstring; and only requests refuse what they do not know."""
    assert shape.__doc__
    assert shape.__struct_config__.forbid_unknown_fields is issubclass(shape, Request)


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ('{"jobs": [{"command": ["a"], "labels": {"ok": "x", "bad": 3}}]}', "jobs[0].labels.bad", "a text, not 3"),
        ('{"jobs": [{"command": ["a"], "tags": {"%s": "x"}}]}' % ("n" * 300), "jobs[0].tags.nnn", "at most 256 char"),
        ('{"jobs": [{"command": ["a"], "tags": {"": "x"}}]}', "jobs[0].tags", "a tag needs a name"),
        ('{"jobs": [{"command": ["a", "b\\u0000"]}]}', "jobs[0].command[1]", "NUL"),
        ('{"jobs": [{"command": ["a", "\\ud800"]}]}', "jobs[0].command[1]", "surrogate"),
        ('{"jobs": [{"command": ["a"], "ports": ["80", "x"]}]}', "jobs[0].ports[1]", "is no port; write 8080"),
        ('{"jobs": [{"command": ["a"], "labels": {"a": "\\n"}}]}', "jobs[0].labels.a", "control characters"),
        ('{"jobs": [{"command": ["a"], "retry": {"limit": -1}}]}', "jobs[0].retry.limit", "must be at least 0"),
        ('{"jobs": [{"command": ["a"], "cwd": 3}]}', "jobs[0].cwd", "must be a text or null, not 3"),
        ('{"jobs": [{"command": ["a"], "no": 3}]}', "jobs[0].no", "no such field"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(body: str, field: str, words: str) -> None:
    """Also inside of lists and objects."""
    with pytest.raises(msgspec.DecodeError) as found:
        msgspec.json.decode(body, type=jobs.Submission)
    with pytest.raises(Refusal) as refused:
        read_otherwise(body.encode(), jobs.Submission, found.value)
    assert str(refused.value.field).startswith(field)
    assert words in refused.value.message


@pytest.mark.parametrize("field", ["starts_at_ms", "length_ms", "every_ms"])
def test_a_window_begins_and_ends_at_moments_that_a_date_can_say(field: str) -> None:
    """Else whoever lists windows would meet one that cannot be shown."""
    body = {"starts_at_ms": BEGIN_MAX_MS, "length_ms": LONGEST_MS, "every_ms": LONGEST_MS}
    draft = msgspec.json.decode(json.dumps(body), type=windows.WindowDraft)
    assert moment(draft.starts_at_ms + draft.length_ms)
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.json.decode(json.dumps(body | {field: 2**53}), type=windows.WindowDraft)


def test_a_choice_is_told_with_what_there_is() -> None:
    """All of it."""
    body = json.dumps({"states": ["waiting", "asleep"]})
    with pytest.raises(msgspec.ValidationError) as found:
        msgspec.json.decode(body, type=orders.Cancellation)
    with pytest.raises(Refusal, match="must be one of waiting, running, suspended, stopping, not 'asleep'"):
        read_otherwise(body.encode(), orders.Cancellation, found.value)


@given(
    amounts=strategies.dictionaries(strategies.sampled_from(["vcore", "memory", "gpu"]), strategies.integers(0, 2**50))
)
def test_what_is_answered_can_be_sent(amounts: dict[str, int]) -> None:
    """The same amount comes back to the books, through JSON, to the thousandth of a core."""
    told = msgspec.json.decode(msgspec.json.encode(fields.with_cpu(amounts)), type=fields.AmountsDraft)
    assert "vcore" not in told
    assert fields.most(told) is told
    assert fields.with_vcore(told) == amounts


def test_wherever_the_books_say_vcore_cpu_is_answered() -> None:
    """Cores, whole where they are; what is no amount stays as it is."""
    told = {"needed": {"vcore": 1500, "memory": 7}, "free": {"vcore": 2000}, "node": "n", "weights": {"vcore": 1.5}}
    assert fields.with_cpu(told) == {
        "needed": {"cpu": 1.5, "memory": 7},
        "free": {"cpu": 2},
        "node": "n",
        "weights": {"vcore": 1.5},
    }
    assert fields.with_cpu(None) is None
    assert fields.measured("vcore", 1, 1000) == ("cpu", (0.001, 1))
    assert fields.measured("memory", 1) == ("memory", (1,))


@pytest.mark.parametrize("mark", ["\x9b", "\x85", "\u202e", "\u2066", "\u200f", "\u2028", "\u061c"])
def test_what_shows_a_name_as_another_is_refused(mark: str) -> None:
    """Wherever one line is wanted, names of tags and labels included (F10); the sentence does not show it."""
    for check, value in (
        (fields.one_line, f"a{mark}b"),
        (fields.tags, {mark: "a"}),
        (fields.labels, {mark: "a"}),
    ):
        with pytest.raises(ValueError, match=f"U\\+{ord(mark):04X}, which shows a text in another order") as found:
            check(value)  # type: ignore[operator]
        assert mark not in str(found.value)
    assert fields.one_line("Übung, 練習 – ok") == "Übung, 練習 – ok"


@pytest.mark.parametrize("letter", ["x", "é"])
def test_what_passes_can_be_given_to_a_process(letter: str) -> None:
    """The longest argument and variable that are taken in; one letter more is refused where it stands."""
    most = fields.LONGEST_WORD // len(letter.encode()) - 1
    env = {"A": letter * (most - 1)}
    words = fields.command(["/bin/true", letter * most])
    subprocess.run(words, env=fields.environment(env), check=True)
    with pytest.raises(fields.Wrong, match="131071 bytes") as refused:
        fields.command(["/bin/true", letter * (most + 2)])
    assert refused.value.field == "[1]"
    with pytest.raises(fields.Wrong, match="131071 bytes") as refused:
        fields.environment({"A": letter * (most + 1)})
    assert refused.value.field == ".A"
