"""Queue objects: queues that are written as objects of the API server, put into the tree of the queue file.

Decides where each one goes, and which are left out and why. Never reads the cluster. Invariant: the queue file comes
first, what it says is never changed; one wrong object keeps no other one out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from fairlead.config import ConfigurationError, load_text
from fairlead.config.load import BUILT_IN, homeless
from fairlead.config.yamltree import yaml_node
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec
from fairlead.kubernetes.objects import Amounts, Part, Text, Thing

_NAMES = {"cpu": "vcore"}


class QueueObjectSpec(Part, frozen=True):
    """What a queue is declared with."""

    parent: str = "root"
    max: Amounts = None
    guaranteed: Amounts = None
    max_applications: int | None = None
    properties: dict[str, str] | None = None
    submit_acl: Text = msgspec.field(default=None, name="submitACL")
    admin_acl: Text = msgspec.field(default=None, name="adminACL")


class QueueObject(Thing, frozen=True):
    """A queue."""

    spec: QueueObjectSpec = QueueObjectSpec()

    @property
    def path(self) -> str:
        """From the root."""
        return f"{self.spec.parent}.{self.metadata.name}".lower()


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
    known = set(_tree(yaml_node(text or BUILT_IN)))
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

    What cannot be together is halved until it is one: the text is read a few times for each that is wrong.
    """
    taken: list[QueueObject] = []
    spec = queues_of(text, source)
    left = [list(queues)]
    while left:
        some = left.pop()
        try:
            spec = queues_of(_together(text, [*taken, *some]), source)
        except (ConfigurationError, KeyError) as problem:
            if len(some) > 1:
                half = len(some) // 2
                left += [some[half:], some[:half]]
            elif isinstance(problem, ConfigurationError):
                flaws[some[0].metadata.name] = "; ".join(found.message for found in problem.problems)
            else:
                flaws[some[0].metadata.name] = f"its parent {some[0].spec.parent} is not accepted"
        else:
            taken += some
    return spec, flaws


def _together(text: str, queues: Sequence[QueueObject]) -> str:
    """The text with these queues in it, parents first. Raises `KeyError` for one whose parent is not there."""
    document = yaml_node(text or BUILT_IN)
    tree = _tree(document)
    for queue in queues:
        above = tree[queue.spec.parent.lower()]
        children = _value(above, "queues")
        if not isinstance(children, yaml.SequenceNode):
            children = _node([])
            above.value.append((_node("queues"), children))
        made = _node(_declared(queue))
        children.value.append(made)
        tree[queue.path] = made
    return str(yaml.serialize(document, Dumper=yaml.SafeDumper))


def _declared(queue: QueueObject) -> dict[str, Any]:
    spec = queue.spec
    limits = {"max": spec.max, "guaranteed": spec.guaranteed}
    resources = {
        kind: {_NAMES.get(name, name): str(amount) for name, amount in given.items()}
        for kind, given in limits.items()
        if given
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
    partitions = _value(document, "partitions")
    found: dict[str, Any] = {}
    for partition in partitions.value if isinstance(partitions, yaml.SequenceNode) else ():
        name = _value(partition, "name")
        if name is None or name.value.lower() != DEFAULT_PARTITION:
            continue
        queues = _value(partition, "queues")
        roots = queues.value if isinstance(queues, yaml.SequenceNode) else []
        found["root"] = partition
        for queue in roots:
            _enter(found, queue, "" if _name(queue) == "root" and len(roots) == 1 else "root.")
    return found


def _enter(found: dict[str, Any], queue: Any, before: str) -> None:
    path = before + _name(queue)
    found[path] = queue
    children = _value(queue, "queues")
    for child in children.value if isinstance(children, yaml.SequenceNode) else ():
        _enter(found, child, f"{path}.")


def _name(queue: Any) -> str:
    name = _value(queue, "name")
    return str(name.value).lower() if name is not None else ""


def _value(mapping: Any, key: str) -> Any:
    pairs = mapping.value if isinstance(mapping, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def _node(value: Any) -> Any:
    return yaml_node(json.dumps(value))
