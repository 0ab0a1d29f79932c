"""Decisions as lines: one readable, canonical line for each, the same bytes for the same decisions.

Decides the form alone: `TIME NAME field=value ...`, fields in their order of declaration, empty ones left out, texts
that could be misread quoted as JSON. Never drops a decision. Invariant: different decisions give different lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any

import msgspec

from fairlead.core.decisions import Decision
from fairlead.core.reasons import Reason

_PLAIN = re.compile(r"[A-Za-z0-9_./:@#|+-]+")
_FIELDS: dict[type, list[tuple[str, Callable[[Any], Any]]]] = {}
_NAMES: dict[type, str] = {}


def decision_line(at_ms: int, decision: Decision) -> str:
    """One line without a line end: when (milliseconds), what, and its fields."""
    kind = type(decision)
    getters = _FIELDS.get(kind)
    if getters is None:
        getters = _FIELDS[kind] = [(f.name, attrgetter(f.name)) for f in fields(decision)]
        _NAMES[kind] = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()
    parts = [f"{at_ms} {_NAMES[kind]}"]
    for name, get in getters:
        value = get(decision)
        if value != "":
            parts.append(f"{name}={_text(value)}")
    return " ".join(parts)


def _text(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    plain = value.as_dict() if isinstance(value, Reason) else value
    return msgspec.json.encode(plain, order="sorted").decode()
