"""YAML text to a tree of nodes that know their line and column. Plain text out, no types yet.

Decides what is YAML at all, and how large, deep and repeated it may be. Never turns `no` into false or `010` into 8: a
scalar stays the text it was written as, with a note whether it was quoted. Only the first document is read; a further
one is reported. Invariant: the tree has no cycle, at most `MAX_DEPTH` levels, and at most `MAX_NODES` nodes counting
every repetition through an alias.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.resolver import Resolver

MAX_CHARACTERS = 4 * 1024 * 1024
MAX_DEPTH = 100
MAX_NODES = 100_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STANDARD_TAG = "tag:yaml.org,2002:"
_WHOLE = r"[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*)"
_PLAIN_TAGS = {
    "int": re.compile(_WHOLE),
    "float": re.compile(_WHOLE + r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"),
    "bool": re.compile("true|True|TRUE|false|False|FALSE"),
    "null": re.compile("|~|null|Null|NULL"),
}
"""What a scalar with one of YAML's own tags may look like."""
_NOT_ALLOWED = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAGGED_KIND = {"map": "mapping", "seq": "list"}


class YamlError(ValueError):
    """Text that is no usable YAML. `line` and `column` count from 1."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(message)
        self.line, self.column, self.message = line, column, message


@dataclass(slots=True, eq=False)
class Node:
    """One value of the text. `kind` is `text`, `list` or `mapping`."""

    kind: str
    line: int
    column: int
    text: str = ""
    plain: bool = False
    """Written without quotes, so that it may mean a number, a truth value or nothing."""
    items: list[Node] = field(default_factory=list)
    """The entries of a list; keys and values in turn of a mapping."""
    size: int = 1
    """Nodes below and including this one, with every repetition."""
    anchor: str = ""

    @property
    def is_null(self) -> bool:
        """Whether it was left empty or says null."""
        return self.kind == "text" and self.plain and self.text in ("", "~", "null", "Null", "NULL")

    @property
    def is_merge_key(self) -> bool:
        """Whether it is the unquoted key `<<`."""
        return self.kind == "text" and self.plain and self.text == "<<"

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Key and value of each entry of a mapping, as written."""
        return zip(self.items[::2], self.items[1::2], strict=True)

    def shown(self, longest: int = 60) -> str:
        """The value as short text for a message."""
        if self.kind != "text":
            return f"a {self.kind}"
        return self.text if len(self.text) <= longest else self.text[: longest - 3] + "..."


@dataclass(slots=True)
class Document:
    """The first document: its root (None when there is nothing in it) and where a second one begins."""

    root: Node | None
    second: tuple[int, int] | None


class _Composer:
    """Builds the tree from parse events with a stack of its own, so that depth cannot exhaust Python's."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.stack: list[Node] = []
        self.anchors: dict[str, Node] = {}
        self.total = 0

    def feed(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._place(self._named(event, _scalar(event)))
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._place(self.stack.pop())
        elif isinstance(event, yaml.AliasEvent):
            self._place(self._target(event))

    def _named(self, event: Any, node: Node) -> Node:
        if event.anchor:
            node.anchor = event.anchor
            self.anchors[event.anchor] = node
        return node

    def _open(self, event: Any) -> None:
        kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "list"
        line, column = _mark(event)
        if len(self.stack) >= MAX_DEPTH:
            raise YamlError(line, column, f"nested deeper than {MAX_DEPTH} levels; make the structure flatter")
        tag = _short_tag(event.tag)
        if tag and _TAGGED_KIND.get(tag) != kind:
            raise YamlError(line, column, f"the tag {_written(event.tag)} has no meaning here; remove it")
        self.stack.append(self._named(event, Node(kind, line, column)))

    def _target(self, event: Any) -> Node:
        line, column = _mark(event)
        target = self.anchors.get(event.anchor)
        if target is None:
            raise YamlError(line, column, f"the alias *{event.anchor} has no anchor &{event.anchor} before it")
        if any(target is open_node for open_node in self.stack):
            message = f"the anchor &{event.anchor} contains itself; write the inner part out"
            raise YamlError(line, column, message)
        return target

    def _place(self, node: Node) -> None:
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        parent.items.append(node)
        parent.size += node.size
        if parent.size > MAX_NODES:
            raise YamlError(
                node.line,
                node.column,
                f"more than {MAX_NODES} values, counting what aliases repeat; split or shorten it",
            )


def compose(text: str) -> Document:
    """The first document of `text`. Raises `YamlError` for what is no YAML, too large, too deep or repeats itself."""
    if len(text) > MAX_CHARACTERS:
        raise YamlError(1, 1, f"{len(text)} characters; at most {MAX_CHARACTERS} are read")
    strange = _NOT_ALLOWED.search(text)
    if strange:
        line, column = position(text, strange.start())
        raise YamlError(line, column, f"the character U+{ord(strange[0]):04X} is not allowed in YAML; remove it")
    composer, second, documents = _Composer(), None, 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents == 2:
                    second = _mark(event)
                    break
            elif documents == 1:
                composer.feed(event)
    except yaml.MarkedYAMLError as error:
        raise _described(error, text, finished=composer.root is not None and not composer.stack) from error
    except yaml.YAMLError as error:
        raise YamlError(1, 1, f"not readable as YAML: {error}") from error
    root = composer.root
    return Document(None if root is None or root.is_null else root, second)


def yaml_node(text: str) -> Any:
    """PyYAML's node of the first document, for who edits a text; None when there is nothing in it.

    Its marks have index and column in the text. Of any text that `compose` takes; raises `YamlError` as that does.
    """
    return _YamlNodes(text).get_node() if compose(text).root is not None else None


class _YamlNodes(Composer, Resolver):
    """PyYAML's composer on the events that are checked: its own reader in Python refuses more than libyaml does."""

    def __init__(self, text: str) -> None:
        Composer.__init__(self)
        Resolver.__init__(self)
        if text.startswith("\ufeff"):
            # libyaml does not count a byte order mark; with an empty line in its place all else keeps its index.
            text = "\n" + text[1:]
        self._events = iter(yaml.parse(text, Loader=_LOADER))
        self._next: Any = None
        self.get_event()  # that the stream begins

    def peek_event(self) -> Any:
        if self._next is None:
            self._next = next(self._events)
        return self._next

    def get_event(self) -> Any:
        event, self._next = self.peek_event(), None
        return event

    def check_event(self, *kinds: type[Any]) -> bool:
        return isinstance(self.peek_event(), kinds)

    def compose_node(self, parent: Any, index: Any) -> Any:
        if not self.check_event(yaml.AliasEvent):
            # An anchor may be used anew, though PyYAML's composer refuses that.
            self.anchors.pop(self.peek_event().anchor, None)
        return super().compose_node(parent, index)


def position(text: str, index: int) -> tuple[int, int]:
    """Line and column, from 1, of a character of the text."""
    before = text[:index]
    return before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1


def _described(error: yaml.MarkedYAMLError, text: str, finished: bool) -> YamlError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    context = f" {error.context}" if error.context else ""
    around = text.split("\n", line)[line - 1 : line]
    at_tab = bool(around) and around[0][column - 1 : column] == "\t"
    hint = "; indent with blanks, not tabs" if at_tab else ""
    if error.context == "while scanning an alias":
        hint = '; a * that stands for everybody is written in quotation marks: "*"'
    if finished:
        hint = "; what is above this line is a whole document already, so look at its indent"
    return YamlError(line, column, f"not readable as YAML{context}: {error.problem}{hint}")


def _mark(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _short_tag(tag: str | None) -> str:
    if not tag or tag == "!":
        return ""
    return tag.removeprefix(_STANDARD_TAG)


def _written(tag: str) -> str:
    return "!!" + tag.removeprefix(_STANDARD_TAG) if tag.startswith(_STANDARD_TAG) else tag


def _scalar(event: Any) -> Node:
    line, column = _mark(event)
    tag = _short_tag(event.tag)
    if tag and tag != "str" and tag not in _PLAIN_TAGS:
        raise YamlError(line, column, f"the tag {_written(event.tag)} has no meaning here; remove it")
    if tag in _PLAIN_TAGS and not _PLAIN_TAGS[tag].fullmatch(event.value):
        raise YamlError(line, column, f"the tag !!{tag} does not go with '{event.value[:60]}'; remove the tag")
    plain = tag in _PLAIN_TAGS or (not event.tag and event.style in (None, ""))
    return Node("text", line, column, event.value, plain)
