"""The JSON schema of a queue file: what editors are told agrees with what is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from fairlead.config import check_text, default_text, schema
from fairlead.config.declare import QUEUE_KEYS

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = schema()


class Texts(yaml.SafeLoader):
    """As editors read YAML: `yes` and `on` are texts, `1e3` is a number."""


Texts.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in rules if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Texts.add_constructor("tag:yaml.org,2002:bool", lambda loader, node: loader.construct_scalar(node))


Texts.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+e\d+"), list("-+0123456789"))


def tree(text: str) -> Any:
    """The values of a text, with true and false as truth values."""
    return _truths(yaml.load(text, Texts))


def _truths(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _truths(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_truths(each) for each in value]
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def faults(text: str) -> list[str]:
    return [error.message for error in jsonschema_rs.Draft202012Validator(SCHEMA).iter_errors(tree(text))]


def files() -> Iterator[tuple[str, str]]:
    """Queue files of documents, scenarios and recorded verdicts."""
    yield "default", default_text()
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for number, block in enumerate(page.read_text("utf-8").split("```yaml\n")[1:]):
            yield f"{page.name}:{number}", block.partition("\n```")[0]
    for path in sorted((ROOT / "tests" / "scenarios" / "data").glob("*.jsonl")):
        with path.open("rb") as lines:
            yield path.name, json.loads(next(lines))["config"]
    verdicts = (Path(__file__).parent / "data" / "verdicts.jsonl").read_text("utf-8").splitlines()
    for number, line in enumerate(verdicts):
        row = json.loads(line)
        if row["refused"] is None:
            yield f"verdict {number}", row["config"]


def accepted(text: str) -> bool:
    """Read without a problem, not even with a warning."""
    return not check_text(text)


FILES = [(name, text) for name, text in files() if accepted(text)]


def test_there_are_examples() -> None:
    """Enough that the comparison below says something."""
    assert len(FILES) >= 100
    assert sum(name.rpartition(":")[0].endswith(".md") for name, _ in FILES) >= 10


@pytest.mark.parametrize("text", [text for _, text in FILES], ids=[name for name, _ in FILES])
def test_what_is_accepted_fits_the_schema(text: str) -> None:
    """An editor marks nothing red that the reader takes without a warning."""
    assert faults(text) == []


@pytest.mark.parametrize(
    "queue",
    [
        "{nmae: a}",
        "{name: a, parent: 5}",
        "{name: a, maxapplications: many}",
        "{name: a, maxapplications: -1}",
        "{name: a, resources: {max: {vcore: lots}}}",
        "{name: a, resources: {most: {vcore: 1}}}",
        "{name: a, limits: {users: [u]}}",
        "{name: a, queues: [{name: b, surprise: 1}]}",
        "{name: a, childtemplate: {queues: []}}",
    ],
)
def test_what_is_wrong_in_a_queue_is_marked(queue: str) -> None:
    """At every level, by the schema as by the reader."""
    text = f"partitions: [{{name: default, queues: [{queue}]}}]"
    assert not accepted(text)
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "partition: []",
        "{partitions: [], priorityclasses: [{name: a}]}",
        "{partitions: [], quotas: [{name: a, queue: root.a, scopes: [{operator: Like}]}]}",
        "{partitions: [], budgets: [{name: a, selector: {matchLabels: {a: [b]}}}]}",
        "partitions: [{name: default, preemption: {rule: both-of-them}, queues: [{name: root}]}]",
    ],
)
def test_what_is_wrong_elsewhere_is_marked(text: str) -> None:
    """Unknown keys, missing ones, and words that are none of those to choose from."""
    assert not accepted(text)
    assert faults(text)


def test_every_key_of_a_queue_is_in_the_schema() -> None:
    """It is the table that is read by."""
    assert SCHEMA["$defs"]["queue"]["properties"].keys() == QUEUE_KEYS.keys()
    jsonschema_rs.meta.validate(SCHEMA)
