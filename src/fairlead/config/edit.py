"""Edits of a queue file's text: one value set, or one key taken out, and all the rest left as somebody wrote it.

Decides where in the text a value goes, and how it is written there. Never judges the outcome: whoever edits reads the
text again and looks whether it says what it should (an anchor that is used twice means two places). Invariant: what
does not belong to the edited value keeps every character, comments and blanks included.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from typing import Any

import yaml

from fairlead.config.yamltree import yaml_node

Path = Sequence[str | int]
"""Keys of mappings and numbers of entries of lists, from the top of the text."""
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")


def steps(path: str) -> list[str | int]:
    """The steps of a place such as `partitions[0].queues[1]`."""
    return [int(number) if number else name for number, name in _STEP.findall(path)]


def with_value(text: str, path: Path, value: str) -> str:
    """The text with this value at the path; keys that are missing on the way are added.

    Raises KeyError where a list has no such entry, or something else stands where a mapping should, and YamlError.
    """
    node = yaml_node(text)
    for at, step in enumerate(path):
        child = _child(node, step)
        if child is None:
            return _added(text, node, str(step), _nested(path[at + 1 :], value))
        node = child
        if at + 1 < len(path) and _is_empty(node):
            return _replaced(text, node, _nested(path[at + 1 :], value))
    return _replaced(text, node, _written(value))


def without_key(text: str, path: Path) -> str:
    """The text without the key at the end of the path. Raises KeyError when it is not there, and YamlError."""
    node = yaml_node(text)
    for step in path[:-1]:
        node = _child(node, step)
        if node is None:
            raise KeyError(step)
    pairs = node.value
    at = next((n for n, (key, _) in enumerate(pairs) if key.value == path[-1]), None)
    if at is None:
        raise KeyError(path[-1])
    if len(pairs) == 1:
        return text[: node.start_mark.index] + "{}" + text[_end(node) :]
    if at + 1 < len(pairs):
        return text[: pairs[at][0].start_mark.index] + text[pairs[at + 1][0].start_mark.index :]
    return text[: _end(pairs[at - 1][1])] + text[_end(pairs[at][1]) :]


def difference(old: str, new: str, name: str = "queues.yaml") -> str:
    """What changes between two texts, as `diff -u` writes it; empty when nothing does."""
    rows = difflib.unified_diff(old.splitlines(), new.splitlines(), name, f"{name} (new)", n=2, lineterm="")
    return "\n".join(rows)


def _child(node: Any, step: str | int) -> Any:
    """What stands there; None where a mapping has no such key. Raises KeyError."""
    if isinstance(step, int):
        if not isinstance(node, yaml.SequenceNode) or step >= len(node.value):
            raise KeyError(step)
        return node.value[step]
    if not isinstance(node, yaml.MappingNode):
        raise KeyError(step)
    return next((value for key, value in node.value if key.value == step), None)


def _is_empty(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _replaced(text: str, node: Any, written: str) -> str:
    start, end = node.start_mark.index, _end(node)
    blank = " " if start == end and text[start - 1 : start] == ":" else ""
    return f"{text[:start]}{blank}{written}{text[end:]}"


def _added(text: str, mapping: Any, key: str, written: str) -> str:
    """In a block a line of its own after the first one; between braces at the end."""
    pair = f"{_written(key)}: {written}"
    if mapping.flow_style:
        at = mapping.end_mark.index - 1
        return f"{text[:at]}{', ' if mapping.value else ''}{pair}{text[at:]}"
    # Of a block with an anchor the mark stands at that.
    indent = " " * mapping.value[0][0].start_mark.column
    if len(mapping.value) > 1:
        at = mapping.value[1][0].start_mark.index
        return f"{text[:at]}{pair}\n{indent}{text[at:]}"
    line_end = text.find("\n", _end(mapping))
    at = line_end if line_end >= 0 else len(text)
    return f"{text[:at]}\n{indent}{pair}{text[at:]}"


def _end(node: Any) -> int:
    """Where the text of a node ends; a block's mark stands behind the blanks and comments that follow it."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _nested(path: Path, value: str) -> str:
    """A value below keys that are new: between braces."""
    if not path:
        return _written(value)
    return f"{{{_written(str(path[0]))}: {_nested(path[1:], value)}}}"


def _written(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
