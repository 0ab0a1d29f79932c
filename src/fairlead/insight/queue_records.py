"""Records of a new configuration: what became different about queues and limits.

Decides by comparing two declared partitions, never the books. Invariant: applying the same configuration again gives no
record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.insight.records import Change, Detail, Record, Type

if TYPE_CHECKING:
    from fairlead.core.resources import Limits
    from fairlead.core.specs import LimitSpec, PartitionSpec, QueueSpec

_Named = dict[tuple[Detail, str, str], "LimitSpec"]
"""A limit by kind, name of the user or group, and path of the queue."""


def queue_records(at_ms: int, old: PartitionSpec | None, new: PartitionSpec) -> list[Record]:
    """The records of a partition's change from `old` (None: it is new) to `new`."""
    before = dict(_walk(old.root, "root")) if old is not None else {}
    after = dict(_walk(new.root, "root"))
    out: list[Record] = []
    for path, spec in after.items():
        out += _of_queue(at_ms, path, before.get(path), spec)
    had, has = _limits(before), _limits(after)
    for (detail, name, path), limit in has.items():
        if had.get((detail, name, path)) != limit:
            amount = limit.max_resources.items if limit.max_resources is not None else ()
            out.append(Record(at_ms, Type.USERGROUP, Change.SET, detail, name, path, "", amount))
    out += [
        Record(at_ms, Type.USERGROUP, Change.REMOVE, detail, name, path)
        for detail, name, path in had
        if (detail, name, path) not in has
    ]
    return out


def _of_queue(at_ms: int, path: str, old: QueueSpec | None, new: QueueSpec) -> Iterator[Record]:
    is_leaf = not new.parent and not new.queues
    if old is not None and is_leaf != (not old.parent and not old.queues):
        text = f"leaf queue: {'true' if is_leaf else 'false'}"
        yield Record(at_ms, Type.QUEUE, Change.SET, Detail.QUEUE_TYPE, path, "", text)
    if path == "root":
        return
    for detail, was, now in (
        (Detail.QUEUE_MAX, old.max if old is not None else None, new.max),
        (Detail.QUEUE_GUARANTEED, old.guaranteed if old is not None else None, new.guaranteed),
    ):
        if _set(was) != _set(now):
            yield Record(at_ms, Type.QUEUE, Change.SET, detail, path, amount=_set(now))


def _set(limits: Limits | None) -> tuple[tuple[str, int], ...]:
    return limits.items if limits is not None and limits.is_set else ()


def _walk(queue: QueueSpec, path: str) -> Iterator[tuple[str, QueueSpec]]:
    yield path, queue
    for child in queue.queues:
        yield from _walk(child, f"{path}.{child.name.lower()}")


def _limits(queues: dict[str, QueueSpec]) -> _Named:
    found: _Named = {}
    for path, queue in queues.items():
        for limit in queue.limits:
            found |= {(Detail.UG_USER_LIMIT, name, path): limit for name in limit.users}
            found |= {(Detail.UG_GROUP_LIMIT, name, path): limit for name in limit.groups}
    return found
