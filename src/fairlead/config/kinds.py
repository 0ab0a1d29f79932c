"""Kinds of values in a queue file, and records made of them, by tables of keys.

Decides how a table of keys becomes a reader that finds unknown and missing keys, and a JSON schema for editors: both
come from the same rows. Never knows what a key means. Invariant: what is read without a problem fits the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fairlead.config import decode
from fairlead.config.yamltree import Node
from fairlead.core.model.properties import KNOWN

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value: how it is read, and what an editor is told of it, as JSON schema."""

    read: decode.Reader
    schema: Schema
    field: str = ""
    """Of a key of a record: the field of the value that it becomes; empty: the same."""
    is_required: bool = False

    def as_(self, field: str) -> Kind:
        """The same, for a field with this name."""
        return replace(self, field=field)

    @property
    def required(self) -> Kind:
        """The same for a key that may not be left out."""
        return replace(self, is_required=True)

    @property
    def filled(self) -> Kind:
        """The same, but what was left empty counts as left out."""
        return replace(self, read=lambda found, node, path: self.read(found, node, path) or None)

    @property
    def or_none(self) -> Kind:
        """The same, but null counts as left out."""
        return replace(self, read=lambda found, node, path: None if node.is_null else self.read(found, node, path))


def _also_null(*types: str, **more: Any) -> Schema:
    return {"type": [*types, "null"], **more}


TEXT = Kind(decode.read_text, _also_null("string", "number", "boolean"))
TEXTS = Kind(decode.read_texts, _also_null("array", items=TEXT.schema))
TEXT_MAP = Kind(decode.read_text_map, _also_null("object", additionalProperties=TEXT.schema))
PROPERTIES = Kind(
    decode.read_text_map,
    _also_null(
        "object",
        properties={rule.key: {**TEXT.schema, "description": rule.allowed} for rule in KNOWN.values()},
        additionalProperties=TEXT.schema,
    ),
)
TRUTH = Kind(decode.read_truth, {"enum": [True, False, None, *sorted(decode.TRUTH_WORDS)]})
COUNT = Kind(decode.read_count, _also_null("number", minimum=0))
INTEGER = Kind(decode.read_integer, _also_null("integer"))
FLOAT_MAP = Kind(decode.read_float_map, _also_null("object", additionalProperties=_also_null("number")))
DURATION = Kind(decode.read_duration, _also_null("string"))
BOUND = Kind(decode.read_bound, _also_null("integer", "string"))
AMOUNTS = Kind(
    decode.read_limits,
    _also_null(
        "object",
        additionalProperties={
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": r"^\s*[0-9]+\s*([kMGTPE]|[KMGTPE]i|m)?\s*$"},
            ]
        },
    ),
)


def choice(*words: str) -> Kind:
    """A text that should be one of these; whether it is, is checked elsewhere."""
    return Kind(decode.read_text, {"enum": [*words, None]})


def list_of(kind: Kind, of_what: str) -> Kind:
    """A list of values of one kind; a null entry is skipped with a warning."""

    def read(found: decode.Findings, node: Node, path: str) -> tuple[Any, ...]:
        return tuple(kind.read(found, item, at) for at, item in decode.entries(found, node, path, of_what))

    return Kind(read, _also_null("array", items=kind.schema))


def read_record(found: decode.Findings, node: Node, path: str, keys: Mapping[str, Kind]) -> dict[str, Any]:
    """A mapping with known keys only; `{}` for null. Returns the values that were given, by their fields."""
    values: dict[str, Any] = {}
    if node.kind != "mapping" and not node.is_null:
        decode.wrong(found, node, path, f"a mapping with some of: {', '.join(keys)}")
    entries_of = decode.merged(found, node, path) if node.kind == "mapping" else {}
    for name, (key, value) in entries_of.items():
        at = decode.child_path(path, name)
        kind = keys.get(name)
        if kind is None:
            hint = found.did_you_mean(name, keys) or f"; known here: {', '.join(keys)}"
            found.add(at, f"unknown key {key.shown()}{hint}", at=key)
            continue
        found.places[at] = value
        given = kind.read(found, value, at)
        if given is not None:
            values[kind.field or name] = given
    if missing := [name for name, kind in keys.items() if kind.is_required and name not in entries_of]:
        found.add(path, f"needs {' and '.join(missing)}")
    return values


RECORDS: dict[str, Mapping[str, Kind]] = {}
"""The keys of every record, by its name."""


def record(name: str, keys: Mapping[str, Kind], made: Callable[..., Any], *, placed: bool = False) -> Kind:
    """A mapping with known keys, from which `made` makes the value; what was left out is not given to it.

    `placed`: it is also given its `path`. The table may be added to afterwards: a queue has queues.
    """
    RECORDS[name] = keys

    def read(found: decode.Findings, node: Node, path: str) -> Any:
        given = read_record(found, node, path, keys)
        return made(path=path, **given) if placed else made(**given)

    return Kind(read, {"$ref": f"#/$defs/{name}"})


def json_schema(name: str) -> Schema:
    """What editors can be told of a whole record: its keys, their types and the words to choose from."""

    def of(keys: Mapping[str, Kind]) -> Schema:
        required = [key for key, kind in keys.items() if kind.is_required]
        properties = {key: kind.schema for key, kind in keys.items()}
        shown: Schema = {**_also_null("object"), "properties": properties, "additionalProperties": False}
        return shown | ({"required": required} if required else {})

    others = {other: of(keys) for other, keys in RECORDS.items() if other != name}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **of(RECORDS[name]), "$defs": others}
