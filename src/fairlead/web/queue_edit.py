"""One value of a queue file changed in its text: what else stands there, comments too, stays as it is.

Decides where a value is, or where it has to be added. Never whether the file then makes sense: the service says that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml


class NotThere(ValueError):
    """The file has no such queue (it was made when somebody submitted to it), or is written too unusually."""


def with_value(text: str, queue: str, keys: Sequence[str], value: str) -> str:
    """The file in which a queue (`root.a.b`) has this value under these keys (`resources`, `max`, `cpu`).

    Raises `NotThere`.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise NotThere(f"the queue file cannot be read: {error}") from error
    at = _queue(root, queue.split("."))
    for number, key in enumerate(keys):
        found = _value(at, key)
        if found is None:
            return _added(text, at, keys[number:], value)
        at = found
    if not isinstance(at, yaml.ScalarNode):
        raise NotThere(f"{'.'.join(keys)} of {queue} is no single value")
    return text[: at.start_mark.index] + _written(value) + text[at.end_mark.index :]


def _queue(root: Any, names: list[str]) -> yaml.MappingNode:
    """The mapping of a queue in the first partition that has it."""
    partitions = _value(root, "partitions")
    for partition in partitions.value if isinstance(partitions, yaml.SequenceNode) else ():
        queues, found = _value(partition, "queues"), None
        for name in names:
            each = queues.value if isinstance(queues, yaml.SequenceNode) else ()
            found = next((one for one in each if _name(one) == name.lower()), None)
            queues = _value(found, "queues") if found is not None else None
        if isinstance(found, yaml.MappingNode) and not found.flow_style:
            return found
    raise NotThere(f"the queue file has no queue {'.'.join(names)}; it was made when somebody submitted to it")


def _name(queue: Any) -> str:
    named = _value(queue, "name")
    return str(named.value).lower() if isinstance(named, yaml.ScalarNode) else ""


def _value(node: Any, key: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == key), None)
    return None


def _added(text: str, at: Any, keys: Sequence[str], value: str) -> str:
    """The text with a value that was not there, at the end of the mapping that lacks it."""
    if not isinstance(at, yaml.MappingNode) or not at.value:
        raise NotThere(f"{keys[0]} cannot be added there; write it into the file by hand")
    if at.flow_style:
        end = at.end_mark.index - 1
        nested = "".join(f"{key}: {{" for key in keys[:-1])
        return f"{text[:end].rstrip()}, {nested}{keys[-1]}: {_written(value)}{'}' * (len(keys) - 1)}{text[end:]}"
    # Behind its first entry, which is on a line (or lines) of its own.
    first_key, first = at.value[0]
    begin = text.find("\n", first.end_mark.index if isinstance(first, yaml.ScalarNode) else _before(text, first))
    begin = len(text) if begin < 0 else begin
    indent = " " * first_key.start_mark.column
    lines = [f"{indent}{'  ' * depth}{key}:" for depth, key in enumerate(keys)]
    return f"{text[:begin]}\n" + "\n".join(lines) + f" {_written(value)}" + text[begin:]


def _before(text: str, node: Any) -> int:
    """The last character of a block that belongs to it: not the blank lines and comments behind."""
    return len(text[: node.end_mark.index].rstrip()) - 1


def _written(value: str) -> str:
    """A value as it is written: as a text, since amounts are."""
    return value if value.isalnum() and not value.isdecimal() else f'"{value}"'
