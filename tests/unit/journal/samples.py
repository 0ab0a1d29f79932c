"""The kept sample of each journal format: how one is written, and what has to be read from it.

`python tests/unit/journal/samples.py` writes the sample of the format of today, and what is in it beside that, where
there is none yet. A sample is never written again: it stands for the files that users have.
"""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from journals import Session, node

from fairlead.core.model import reasons
from fairlead.core.model.decisions import DECISIONS
from fairlead.core.model.events import EVENTS
from fairlead.core.model.resources import Limits, Resources
from fairlead.journal.codec import encode
from fairlead.journal.format import FORMAT, NOTE
from fairlead.journal.store import Journal

DATA = Path(__file__).parent / "data"
SCALARS = {str: "text", int: 7, float: 0.5, bool: True, object: {"any": [1, None]}}


def sample(version: int) -> Path:
    return DATA / f"format-{version}.db"


def contents(version: int) -> list[Any]:
    """What is in its notes, in their order, with every field."""
    read: list[Any] = json.loads((DATA / f"format-{version}.json").read_text())
    return read


def values() -> Iterator[Any]:
    """Of each event, decision and reason one with every field set, and one with the least that is possible."""
    no = [c for c in vars(reasons).values() if isinstance(c, type) and issubclass(c, reasons.Reason)]
    for cls in (*EVENTS, *DECISIONS, *no):
        yield of(cls, whole=True)
        yield of(cls, whole=False)


def of(cls: type, whole: bool, depth: int = 0) -> Any:
    hints = typing.get_type_hints(cls)
    least = [f for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]
    return cls(**{f.name: _part(hints[f.name], whole, depth) for f in (fields(cls) if whole else least)})


def _part(hint: Any, whole: bool, depth: int) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint in SCALARS:
        return SCALARS[hint]
    if hint in (Resources, Limits):
        return hint({"memory": 2**40, "vcore": 1500})
    if hint is reasons.Reason:
        return reasons.NoNodes("default")
    if origin in (types.UnionType, typing.Union):
        return _part(args[0], whole, depth)
    if origin is tuple:
        return tuple(_part(a, whole, depth) for a in args if a is not Ellipsis) if whole and depth < 5 else ()
    if origin is not None and issubclass(origin, Mapping):
        return {name: _part(args[1], whole, depth) for name in ("b", "a")} if whole else {}
    if issubclass(hint, Enum):
        return list(hint)[-1]
    # A queue holds queues, and a rule its parent: the inner ones have the least.
    return of(hint, whole and depth < 4, depth + 1)


def described(value: Any) -> Any:
    """A value with every field, as JSON has it."""
    if is_dataclass(value):
        return {"$": type(value).__name__, **{f.name: described(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, Resources | Limits):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {key: described(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [described(part) for part in value]
    return value.value if isinstance(value, Enum) else value


def covers(now: Any, then: Any) -> bool:
    """Whether what is read now says all that was written then; a class may have got more fields since."""
    if isinstance(then, dict) and isinstance(now, dict):
        same = then.keys() <= now.keys() if "$" in then else then.keys() == now.keys()
        return same and all(covers(now[key], then[key]) for key in then)
    if isinstance(then, list) and isinstance(now, list):
        return len(then) == len(now) and all(map(covers, now, then))
    return type(now) is type(then) and bool(now == then)


def write(path: Path, what: Path) -> None:
    """Two rounds of a small scheduler with a snapshot between them, and a note for each of the values."""
    written = []
    with Journal(path) as journal:
        session = Session(journal)
        session.event(0, node())
        session.rounds(1, 1)
        session.snapshot()
        session.rounds(2, 1)
        for value in values():
            journal.append(10_000, NOTE, encode(value))
            written.append(described(value))
    path.with_name(path.name + ".lock").unlink()
    what.write_text("[\n" + ",\n".join(json.dumps(w, sort_keys=True) for w in written) + "\n]\n")


if __name__ == "__main__":
    if sample(FORMAT).exists():
        sys.exit(f"{sample(FORMAT).name} is there already, and stays as it is")
    write(sample(FORMAT), sample(FORMAT).with_suffix(".json"))
