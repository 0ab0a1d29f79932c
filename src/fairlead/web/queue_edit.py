"""One value of a queue set in the text of a queue file: what else stands there, comments too, stays as it is.

Decides where the file has the queue. Never whether the file then makes sense: the service says that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from fairlead.config import edit
from fairlead.config.yamltree import YamlError, yaml_node


class NotThere(ValueError):
    """The file has no such queue (it was made when somebody submitted to it), or is written too unusually."""


def with_value(text: str, queue: str, keys: Sequence[str], value: str) -> str:
    """The file in which a queue (`root.a.b`) has this value under these keys (`resources`, `max`, `vcore`).

    Raises `NotThere`.
    """
    try:
        path = _path(yaml_node(text), queue.lower().split("."))
    except YamlError as error:
        raise NotThere(f"the queue file cannot be read: line {error.line}: {error}") from error
    if path is None:
        raise NotThere(f"the queue file has no queue {queue}; it was made when somebody submitted to it")
    try:
        return edit.with_value(text, [*path, *keys], value)
    except KeyError as error:
        raise NotThere(f"{keys[0]} of {queue} cannot be set there; write it into the file by hand") from error


def value_of(text: str, queue: str, keys: Sequence[str]) -> str:
    """What the file says there; empty: nothing, or it has no such queue."""
    try:
        root = yaml_node(text)
    except YamlError:
        return ""
    found: Any = root
    for step in [*(_path(root, queue.lower().split(".")) or ()), *keys]:
        found = found.value[step] if isinstance(step, int) else _value(found, step)
    return str(found.value) if isinstance(found, yaml.ScalarNode) else ""


def _path(root: Any, names: Sequence[str]) -> edit.Path | None:
    """The place of a queue in the first partition that has it."""
    for number, partition in _entries(root, "partitions"):
        tops = [_name(queue) for _, queue in _entries(partition, "queues")]
        found: Any = partition
        path: list[str | int] = ["partitions", number]
        # The root may be left out there.
        for name in names if tops == ["root"] else names[1:]:
            index, found = next(((n, q) for n, q in _entries(found, "queues") if _name(q) == name), (0, None))
            path += ["queues", index]
        if found is not None:
            return path if found is not partition else [*path, "queues"]
    return None


def _entries(mapping: Any, key: str) -> list[tuple[int, Any]]:
    """What is in a list, with its numbers; empty entries do not count."""
    found = _value(mapping, key)
    entries = found.value if isinstance(found, yaml.SequenceNode) else ()
    return [(number, each) for number, each in enumerate(entries) if isinstance(each, yaml.MappingNode)]


def _name(queue: Any) -> str:
    named = _value(queue, "name")
    return str(named.value).lower() if isinstance(named, yaml.ScalarNode) else ""


def _value(node: Any, key: str) -> Any:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)
