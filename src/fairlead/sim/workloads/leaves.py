"""A queue file for a workload that comes without one.

Decides that every queue that the workload names is a leaf like all others: no guarantee, no limit. Never reads a
workload. Invariant: the text is valid and has each named leaf once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

DEFAULT_QUEUE = "root.default"
Tree: TypeAlias = "dict[str, Tree]"
_BAD = re.compile(r"[^a-zA-Z0-9_:#/@-]")


def queue_name(text: str) -> str:
    """A name that a queue can have, made of any text."""
    return _BAD.sub("-", text.strip())[:64].lower() or "default"


def queue_path(text: str) -> str:
    """A whole path below root, made of any text; nothing gives `root.default`."""
    parts = [part for part in text.strip().split(".") if part.strip()]
    if parts and parts[0].lower() == "root":
        parts = parts[1:]
    return ".".join(["root", *map(queue_name, parts)]) if parts else DEFAULT_QUEUE


def queue_file(paths: Iterable[str], *, preemption: bool = True) -> str:
    """The YAML text with a leaf for each path, which begins with `root.`"""
    tree: Tree = {}
    for path in paths:
        level = tree
        for name in path.split(".")[1:]:
            level = level.setdefault(name, {})
    lines = ["partitions:", "  - name: default"]
    if not preemption:
        lines.append("    preemption: {enabled: false}")
    lines += ["    queues:", "      - name: root", '        submitacl: "*"']

    def write(level: Tree, indent: str) -> None:
        if level:
            lines.append(f"{indent}queues:")
        for name, below in level.items():
            lines.append(f'{indent}  - name: "{name}"')
            write(below, indent + "    ")

    write(tree, " " * 8)
    return "\n".join(lines) + "\n"
