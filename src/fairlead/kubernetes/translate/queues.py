"""Queue objects: queues that are written as objects of the API server, put into the tree of the queue file.

Decides where each one goes, and which are left out and why. Never reads the cluster. Invariant: the queue file comes
first, what it says is never changed; one wrong object keeps no other one out.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import yaml

from fairlead.config import ConfigurationError, load_text
from fairlead.config.declare import declared
from fairlead.config.decode import Findings
from fairlead.config.load import BUILT_IN, errors_of, homeless
from fairlead.config.yamltree import YamlError, compose, yaml_node
from fairlead.core.model.quantities import format_quantity, resource_called
from fairlead.core.model.resources import Book, Items, Limits, add_to, take_from
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec, PartitionSpec, QueueSpec
from fairlead.kubernetes.objects import Amounts, Condition, Part, Text, Thing
from fairlead.kubernetes.translate.amounts import AmountError, quantity

ACCEPTED, LEFT_OUT = "Accepted", "LeftOut"
"""A condition of a queue, and its reason where it does not count."""
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
        taken = _those_that_can(spec, fit, flaws)
    while True:
        try:
            return queues_of(_together(text, taken), source), flaws
        except ConfigurationError as problem:
            # As a text they are too large together: without the last ones, which are nobody's parents.
            fewer = len(taken) * 7 // 8
            flaws.update(dict.fromkeys((queue.metadata.name for queue in taken[fewer:]), _said(problem)))
            taken = taken[:fewer]


def _those_that_can(spec: ClusterSpec, queues: Sequence[QueueObject], flaws: dict[str, str]) -> list[QueueObject]:
    """Some of them cannot be: those that can with what was taken before are taken, in order.

    Each is looked at on its way from the root alone, so that hundreds that are wrong take no time.
    """
    partition = next(part for part in spec.partitions if part.name == DEFAULT_PARTITION)
    tree: dict[str, _Branch] = {}
    _Branch.grow(tree, "root", partition.root, None)
    taken = []
    for queue in queues:
        above = tree.get(queue.spec.parent.lower())
        if above is None:
            flaws[queue.metadata.name] = f"its parent {queue.spec.parent} is not accepted"
            continue
        try:
            made = _read_alone(queue)
            above.refuse(made, partition)
        except (ConfigurationError, YamlError) as problem:
            flaws[queue.metadata.name] = _said(problem)
        else:
            _Branch.grow(tree, queue.path, made, above)
            taken.append(queue)
    return taken


def _said(problem: ConfigurationError | YamlError) -> str:
    errors = problem.errors if isinstance(problem, ConfigurationError) else [problem]
    return "; ".join(dict.fromkeys(error.message for error in errors))


def _read_alone(queue: QueueObject) -> QueueSpec:
    """What it says. Raises `ConfigurationError` or `YamlError` for what cannot be read."""
    found = Findings("")
    document = compose(yaml.safe_dump({"partitions": [{"queues": [_declared(queue)]}]}))
    assert document.root is not None
    (made,) = declared(found, document.root).partitions[0].queues or ()
    if found.failed:
        raise ConfigurationError(found.problems)
    return made


@dataclass(slots=True)
class _Branch:
    """A queue by itself, and what those below it are guaranteed together: no other one needs to know more of them."""

    spec: QueueSpec
    above: _Branch | None
    below: Book

    @classmethod
    def grow(cls, tree: dict[str, _Branch], path: str, spec: QueueSpec, above: _Branch | None) -> None:
        """Enter a queue by its path, and those that are in it."""
        branch = tree[path] = cls(replace(spec, queues=()), above, {})
        over = above
        while over is not None:
            add_to(over.below, branch.guaranteed)
            over = None if over.guaranteed else over.above
        for child in spec.queues:
            cls.grow(tree, f"{path}.{child.name.lower()}", child, branch)

    @property
    def guaranteed(self) -> Items:
        """What the queue itself says; all zero says nothing."""
        return tuple(pair for pair in self.spec.guaranteed or () if pair[1])

    def refuse(self, child: QueueSpec, partition: PartitionSpec) -> None:
        """Raises `ConfigurationError` with what is wrong once it has one more child, and was not before."""
        after = errors_of(self._alone_in(partition, child))
        before = {problem.message for problem in (errors_of(self._alone_in(partition, None)) if after else ())}
        if new := [problem for problem in after if problem.message not in before]:
            raise ConfigurationError(new)

    def _alone_in(self, partition: PartitionSpec, child: QueueSpec | None) -> ClusterSpec:
        """The way from the root to it, and on to the child; of all others what they are guaranteed, as one."""
        queue, branch = child, self
        known: Items = ()
        while True:
            others = dict(branch.below)
            take_from(others, known)
            name = "@" if queue is None or queue.name != "@" else "#"
            rest = QueueSpec(name=name, guaranteed=Limits(others), max_applications=branch.spec.max_applications)
            queue = replace(branch.spec, queues=(rest, queue) if queue else (rest,))
            known = branch.guaranteed or tuple(branch.below.items())
            if branch.above is None:
                return ClusterSpec(partitions=(replace(partition, root=queue),))
            branch = branch.above


def _together(text: str, queues: Sequence[QueueObject]) -> str:
    """The text with these queues in it, parents first."""
    document = _written_out(yaml_node(text or BUILT_IN))
    tree = _tree(document)
    for queue in queues:
        above = tree[queue.spec.parent.lower()]
        children = _value(above, "queues")
        if not isinstance(children, yaml.SequenceNode):
            children = _node([])
            above.value = [pair for pair in above.value if pair[0].value != "queues"]
            above.value.append((_node("queues"), children))
        made = tree[queue.path] = _node(_declared(queue))
        children.value.append(made)
    return str(yaml.serialize(document, Dumper=yaml.SafeDumper))


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
    """As `yaml_node` of its text, which JSON is not always: there a sign beyond the 65,536th is two."""
    return yaml.SafeDumper(io.StringIO(), sort_keys=False).represent_data(value)
