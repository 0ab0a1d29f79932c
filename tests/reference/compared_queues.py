"""The queues of random workloads: maximums and limits of users, guarantees, offsets and fences."""

from __future__ import annotations

import random
from dataclasses import replace

from reference.plain_line import Queue


def queues_of(chance: random.Random, *, is_owed: bool, is_shifted: bool) -> dict[str, Queue]:
    """Three below the root, two of them leaves, and two leaves below the third."""
    queues = {path: _queue(chance, 10) for path in ("root.a", "root.b")}
    queues["root.c"] = Queue({"vcore": 6000} if chance.random() < 0.5 else None)
    queues |= {path: _queue(chance, 6) for path in ("root.c.x", "root.c.y")}
    if is_owed:
        queues = with_guarantees(chance, queues)
    if is_shifted:
        queues = {path: _shifted(chance, path, queue) for path, queue in queues.items()}
    return queues


def _queue(chance: random.Random, above: int) -> Queue:
    most = chance.randint(3, above) if chance.random() < 0.4 else 0
    users = {"vcore": 1000 * chance.randint(3, most or above)} if chance.random() < 0.3 else None
    return Queue({"vcore": 1000 * most} if most else None, users)


def with_guarantees(chance: random.Random, queues: dict[str, Queue]) -> dict[str, Queue]:
    """None above the maximum of its queue, nor those of children together above that of their parent or its maximum."""
    due = {path: 1000 * chance.randint(1, 4) if chance.random() < 0.5 else 0 for path in queues}
    due |= {path: min(amount, (queues[path].most or {"vcore": amount})["vcore"]) for path, amount in due.items()}
    below = due["root.c.x"] + due["root.c.y"]
    if below > (queues["root.c"].most or {"vcore": below})["vcore"]:
        due["root.c.y"], below = 0, due["root.c.x"]
    due["root.c"] = max(due["root.c"], below) if due["root.c"] else 0
    return {path: replace(queue, due={"vcore": due[path]} if due[path] else None) for path, queue in queues.items()}


def _shifted(chance: random.Random, path: str, queue: Queue) -> Queue:
    """The same with an offset, or a fence, or one who keeps preemption in or out."""
    some = chance.random
    return replace(
        queue,
        offset=chance.choice([-2, -1, 1, 2]) if some() < 0.4 else 0,
        is_fence=some() < 0.15,
        stays=chance.choice(["fence", "disabled"]) if some() < 0.2 else "",
    )
