"""Queues with bounds of memory too, limits above the leaves, work for one node alone, idle work that borrows below the
root, and jobs that share their queue, for the comparison of two simulators: drawn.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from reference.compared_world import World
from reference.plain_line import Amount, Job, Queue


def with_more(chance: random.Random, made: World, more: int, *, is_owed: bool) -> World:
    """What of it there is in worlds of this number; `is_owed`: guarantees, too."""

    def changed(change: Callable[[dict[str, Queue]], dict[str, Queue]]) -> World:
        queues = change(made.queues)
        ordered = [change(order.queues) if order.queues else None for order in made.orders]
        orders = tuple(replace(order, queues=each) for order, each in zip(made.orders, ordered, strict=True))
        return replace(made, queues=queues, orders=orders)

    if more & 1048576:
        limits = not more & 512 or bool(more & 2048)
        made = changed(partial(_wider, chance, is_owed=is_owed, limits=limits))
        made.jobs = [replace(job, gang=job.gang and _could_stand(job, made.queues)) for job in made.jobs]
        made.nodes = _more_nodes(chance, made.nodes)
    if more & 4194304:
        made = changed(_with_group)
        made.jobs = _idle(chance, made.jobs)
    if more & 8388608:
        made = changed(partial(_fair, chance))
        made.jobs = [replace(job, gang=False) for job in made.jobs]
    return replace(made, jobs=_on_one_node(chance, made.jobs, made.nodes)) if more & 2097152 else made


def _more_nodes(chance: random.Random, nodes: dict[str, Amount]) -> dict[str, Amount]:
    """Some more, of other sizes."""
    names = [f"n{len(nodes) + i}" for i in range(chance.randint(0, 4))]
    return nodes | {name: {"vcore": 1000 * chance.randint(1, 8), "memory": chance.randint(2, 12)} for name in names}


def _wider(chance: random.Random, queues: dict[str, Queue], *, is_owed: bool, limits: bool) -> dict[str, Queue]:
    """Bounds of memory beside those of cores, or instead, and limits of users where two leaves meet."""
    made: dict[str, Queue] = {}
    for path, queue in queues.items():
        users, due = queue.users, queue.due
        most = _bound(chance, queue.most, 4, 16)
        if limits:
            users = _bound(chance, users, 3, 8)
            if path == "root.c" and chance.random() < 0.5:
                users = {"vcore": 1000 * chance.randint(3, 6)}
        if is_owed:
            due = _bound(chance, due, 1, 5)
        made[path] = replace(queue, most=most, users=_within(users, most), due=_within(due, most))
    return _sums(made)


def _bound(chance: random.Random, bound: Amount | None, least: int, most: int) -> Amount | None:
    """Of memory as well, or alone."""
    some = chance.random()
    memory = {"memory": chance.randint(least, most)}
    if some < 0.5:
        return bound
    return memory if bound is None or some > 0.85 else bound | memory


def _within(bound: Amount | None, most: Amount | None) -> Amount | None:
    """No more than the maximum of the same queue."""
    return (
        None if bound is None else {name: min(value, (most or bound).get(name, value)) for name, value in bound.items()}
    )


def _sums(queues: dict[str, Queue]) -> dict[str, Queue]:
    """Of what is guaranteed below a queue no more than its maximum, and what it is guaranteed itself is no less; no
    child has a larger maximum.
    """
    parent = queues["root.c"]
    for name, most in (parent.most or {}).items():
        for path in ("root.c.x", "root.c.y"):
            own = queues[path].most
            if own is not None and own.get(name, 0) > most:
                queues[path] = replace(queues[path], most=own | {name: most})
        due = queues["root.c.y"].due or {}
        if (queues["root.c.x"].due or {}).get(name, 0) + due.get(name, 0) > most:
            rest = {each: value for each, value in due.items() if each != name}
            queues["root.c.y"] = replace(queues["root.c.y"], due=rest or None)
    for path in ("root.c.x", "root.c.y"):
        own = queues[path]
        users = _within(_within(own.users, own.most), parent.users)
        queues[path] = replace(own, due=_within(own.due, own.most), users=users)
    below = Counter(queues["root.c.x"].due or {}) + Counter(queues["root.c.y"].due or {})
    if parent.due:
        queues["root.c"] = replace(parent, due={name: max(value, below[name]) for name, value in parent.due.items()})
    return queues


def _could_stand(job: Job, queues: Mapping[str, Queue]) -> bool:
    """Whether no bound on the way of a gang is too small for all of it."""
    total = Counter[str]()
    for task in job.tasks:
        total.update(dict(task.amount))
    above = [queue for path, queue in queues.items() if f"{job.queue}.".startswith(f"{path}.")]
    bounds = [bound for queue in above for bound in (queue.most, queue.users) if bound]
    return all(total[name] <= value for bound in bounds for name, value in bound.items())


def _with_group(queues: Mapping[str, Queue]) -> dict[str, Queue]:
    """Idle work of two leaves borrows where they meet."""
    return {path: replace(queue, is_group=path == "root.c") for path, queue in queues.items()}


def _fair(chance: random.Random, queues: Mapping[str, Queue]) -> dict[str, Queue]:
    """In most leaves jobs share."""
    parents = {path.rpartition(".")[0] for path in queues}
    return {
        path: replace(queue, is_fair=path not in parents and chance.random() < 0.7) for path, queue in queues.items()
    }


def _idle(chance: random.Random, jobs: list[Job]) -> list[Job]:
    """Some more of the work is idle."""
    return [
        job
        if job.gang or chance.random() < 0.6
        else replace(job, tasks=tuple(replace(t, idle=True) for t in job.tasks))
        for job in jobs
    ]


def _on_one_node(chance: random.Random, jobs: list[Job], nodes: Mapping[str, Amount]) -> list[Job]:
    """Some work may run on one node alone."""
    return [
        job if job.gang or job.tasks[0].idle or chance.random() < 0.7 else _bound_to(chance, job, nodes) for job in jobs
    ]


def _bound_to(chance: random.Random, job: Job, nodes: Mapping[str, Amount]) -> Job:
    tasks = (replace(task, required=chance.choice(list(nodes))) for task in job.tasks)
    return replace(job, tasks=tuple(tasks))
