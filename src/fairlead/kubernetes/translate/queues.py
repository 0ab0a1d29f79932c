"""Queue objects: queues that are written as objects of the API server, put into the tree of the queue file.

Decides where each one goes, and which are left out and why. Never reads the cluster. Invariant: the queue file comes
first, what it says is never changed; one wrong object keeps no other one out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from fairlead.config import ConfigurationError, load_text
from fairlead.config.load import BUILT_IN, homeless
from fairlead.config.yamltree import yaml_node
from fairlead.core.model.quantities import format_quantity, resource_called
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec
from fairlead.kubernetes.objects import Amounts, Condition, Part, Text, Thing
from fairlead.kubernetes.translate.amounts import AmountError, quantity

ACCEPTED, LEFT_OUT = "Accepted", "LeftOut"
"""A condition of a queue, and its reason where it does not count."""
_OF_QUEUE = re.compile(r"(.*queues\[\d+\]).*")
_MERGE, _NULL = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:null"


class QueueObjectSpec(Part, frozen=True):
    """What a queue is declared with."""

    parent: str = "root"
    max: Amounts = None
    guaranteed: Amounts = None
    max_applications: int | None = None
    properties: dict[str, str] | None = None
    submit_acl: Text = msgspec.field(default=None, name="submitACL")
    admin_acl: Text = msgspec.field(default=None, name="adminACL")


class QueueObjectStatus(Part, frozen=True):
    """What was said of a queue."""

    conditions: list[Condition] | None = None


class QueueObject(Thing, frozen=True):
    """A queue."""

    spec: QueueObjectSpec = QueueObjectSpec()
    status: QueueObjectStatus = QueueObjectStatus()

    @property
    def path(self) -> str:
        """From the root."""
        return f"{self.spec.parent}.{self.metadata.name}".lower()

    @property
    def was_left_out(self) -> bool:
        """Whether it was last said to be no queue that counts."""
        return any(c.type == ACCEPTED and c.reason == LEFT_OUT for c in self.status.conditions or ())


def queues_of(text: str, source: str) -> ClusterSpec:
    """The queue file of a text. Raises `ConfigurationError` also for one without the partition of the cluster."""
    spec = load_text(text, source=source)
    if missing := homeless(spec, source):
        raise ConfigurationError(missing)
    return spec


def with_queues(text: str, source: str, queues: Iterable[QueueObject]) -> tuple[ClusterSpec, Mapping[str, str]]:
    """The queue file with these queues in it; and why some are not, by name.

    Raises `ConfigurationError` when the file itself is wrong.
    """
    spec = queues_of(text, source)
    flaws: dict[str, str] = {}
    fit: list[QueueObject] = []
    known = set(_tree(_written_out(yaml_node(text or BUILT_IN))))
    for queue in sorted(queues, key=lambda q: (q.path.count("."), q.path)):
        if queue.path in known:
            flaws[queue.metadata.name] = f"the queue file has a queue {queue.path}, which comes first"
        elif queue.spec.parent.lower() not in known:
            flaws[queue.metadata.name] = f"there is no queue {queue.spec.parent} to be its parent"
        else:
            known.add(queue.path)
            fit.append(queue)
    if not fit:
        return spec, flaws
    try:
        return queues_of(_together(text, fit), source), flaws
    except ConfigurationError:
        return _those_that_can(text, source, fit, flaws)


def _those_that_can(
    text: str, source: str, queues: Sequence[QueueObject], flaws: dict[str, str]
) -> tuple[ClusterSpec, Mapping[str, str]]:
    """Some of them cannot be: those that can with what was taken before are taken, in order.

    What cannot be together is halved until it is one: the text is read a few times for each that is wrong, but for
    those that are wrong by themselves, of which there may be hundreds once the queue above them has a lower maximum.
    """
    taken: list[QueueObject] = []
    spec = queues_of(text, source)
    left = [_right_by_themselves(text, source, queues, flaws)]
    failed: dict[bytes, str] = {}
    """By what a queue below the same parent says, name apart: why it cannot be, and so no further one like it can."""
    while left:
        some = []
        for queue in left.pop():
            if why_not := failed.get(msgspec.json.encode(queue.spec)):
                flaws[queue.metadata.name] = why_not
            else:
                some.append(queue)
        if not some:
            continue
        try:
            spec = queues_of(_together(text, [*taken, *some]), source)
        except (ConfigurationError, KeyError) as problem:
            if len(some) > 1:
                half = len(some) // 2
                left += [some[half:], some[:half]]
            elif isinstance(problem, ConfigurationError):
                why_not = flaws[some[0].metadata.name] = "; ".join(found.message for found in problem.errors)
                if some[0].path not in why_not:
                    failed[msgspec.json.encode(some[0].spec)] = why_not
            else:
                flaws[some[0].metadata.name] = f"its parent {some[0].spec.parent} is not accepted"
        else:
            taken += some
    return spec, flaws


def _right_by_themselves(
    text: str, source: str, queues: Sequence[QueueObject], flaws: dict[str, str]
) -> list[QueueObject]:
    """Without those that some error names and nothing else has to do with: they have no queues below them."""
    left = list(queues)
    while left:
        document, made = _document(text, left)
        try:
            queues_of(_serialized(document), source)
            break
        except ConfigurationError as problem:
            parents = {queue.spec.parent.lower() for queue in left}
            by_place = {place: made[id(node)] for place, node in _places(document) if id(node) in made}
            named: dict[str, list[str]] = {}
            for error in problem.errors:
                queue = by_place.get(_OF_QUEUE.sub(r"\1", error.path))
                if queue is not None and queue.path not in parents:
                    named.setdefault(queue.metadata.name, []).append(error.message)
            if not named:
                break
            flaws.update({name: "; ".join(messages) for name, messages in named.items()})
            left = [queue for queue in left if queue.metadata.name not in named]
    return left


def _together(text: str, queues: Sequence[QueueObject]) -> str:
    """The text with these queues in it, parents first. Raises `KeyError` for one whose parent is not there."""
    return _serialized(_document(text, queues)[0])


def _serialized(document: Any) -> str:
    return str(yaml.serialize(document, Dumper=yaml.SafeDumper))


def _document(text: str, queues: Sequence[QueueObject]) -> tuple[Any, dict[int, QueueObject]]:
    """The same as a tree of nodes, and which of them is which queue."""
    document, added = _written_out(yaml_node(text or BUILT_IN)), {}
    tree = _tree(document)
    for queue in queues:
        above = tree[queue.spec.parent.lower()]
        children = _value(above, "queues")
        if not isinstance(children, yaml.SequenceNode):
            children = _node([])
            above.value = [pair for pair in above.value if pair[0].value != "queues"]
            above.value.append((_node("queues"), children))
        made = _node(_declared(queue))
        children.value.append(made)
        tree[queue.path], added[id(made)] = made, queue
    return document, added


def _places(mapping: Any, before: str = "", key: str = "partitions") -> Iterator[tuple[str, Any]]:
    """All queues, each with its place in the structure, as errors name it: `partitions[0].queues[1].queues[0]`."""
    found = _value(mapping, key)
    for number, node in enumerate(found.value if isinstance(found, yaml.SequenceNode) else ()):
        if isinstance(node, yaml.MappingNode):
            place = f"{before}{key}[{number}]"
            yield place, node
            yield from _places(node, f"{place}.", "queues")


def _amount(name: str, amount: str | float) -> tuple[str, str]:
    """A quantity of Kubernetes as the queue file has it; what is none is refused where that is read."""
    named = resource_called(name)
    try:
        return named, format_quantity(named, quantity(name, amount))
    except AmountError:
        return named, str(amount)


def _written_out(node: Any) -> Any:
    """A copy without aliases and merges: each queue stands in one place, where something can be added to it alone."""
    if isinstance(node, yaml.SequenceNode):
        return yaml.SequenceNode(node.tag, [_written_out(item) for item in node.value], flow_style=node.flow_style)
    if not isinstance(node, yaml.MappingNode):
        return yaml.ScalarNode(node.tag, node.value, style=node.style)
    pairs = _own_and_merged(node).values()
    return yaml.MappingNode(node.tag, [(key, _written_out(value)) for key, value in pairs], flow_style=node.flow_style)


def _own_and_merged(mapping: Any) -> dict[str, tuple[Any, Any]]:
    """Key and value by key: what the mapping says itself comes before what it merges, and that in order."""
    found = {key.value: (key, value) for key, value in mapping.value if key.tag != _MERGE}
    for key, value in mapping.value:
        for source in (value.value if isinstance(value, yaml.SequenceNode) else [value]) if key.tag == _MERGE else ():
            for name, pair in _own_and_merged(source).items():
                found.setdefault(name, pair)
    return found


def _declared(queue: QueueObject) -> dict[str, Any]:
    spec = queue.spec
    limits = {"max": spec.max, "guaranteed": spec.guaranteed}
    resources = {
        kind: dict(_amount(name, amount) for name, amount in given.items()) for kind, given in limits.items() if given
    }
    given = {
        "resources": resources,
        "maxapplications": spec.max_applications,
        "properties": spec.properties,
        "submitacl": spec.submit_acl,
        "adminacl": spec.admin_acl,
    }
    return {"name": queue.metadata.name, **{name: value for name, value in given.items() if value}}


def _tree(document: Any) -> dict[str, Any]:
    """The queues of the cluster's partition by path, as nodes of the text; the root may be left out there."""
    found: dict[str, Any] = {}
    for partition in _mappings(document, "partitions"):
        if _name(partition) not in ("", DEFAULT_PARTITION):
            continue
        roots = _mappings(partition, "queues")
        found["root"] = partition
        for queue in roots:
            _enter(found, queue, "" if _name(queue) == "root" and len(roots) == 1 else "root.")
    return found


def _enter(found: dict[str, Any], queue: Any, before: str) -> None:
    path = before + _name(queue)
    found[path] = queue
    for child in _mappings(queue, "queues"):
        _enter(found, child, f"{path}.")


def _name(queue: Any) -> str:
    name = _value(queue, "name")
    return "" if name is None or name.tag == _NULL else str(name.value).lower()


def _mappings(mapping: Any, key: str) -> list[Any]:
    """What a list has; empty entries do not count."""
    found = _value(mapping, key)
    entries = found.value if isinstance(found, yaml.SequenceNode) else ()
    return [entry for entry in entries if isinstance(entry, yaml.MappingNode)]


def _value(mapping: Any, key: str) -> Any:
    return next((value for name, value in mapping.value if name.value == key), None)


def _node(value: Any) -> Any:
    return yaml_node(json.dumps(value))
