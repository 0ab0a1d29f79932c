"""What is in workloads of the rule `guarantee`: orders of jobs and queues, and what has work stopped when."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import replace

from reference.plain_line import Job, Queue


def walked(
    chance: random.Random, queues: dict[str, Queue], leaves: Collection[str], *, stops: bool
) -> dict[str, Queue]:
    """These queues; some leaves go by what their jobs have, and some queues by that before priority."""
    some = chance.random
    return {
        path: replace(
            queue,
            is_fair=path in leaves and some() < 0.4,
            ignores_priority=some() < 0.3,
            delay_ms=1000 * chance.choice([1, 5, 10, 30]) if stops and path in leaves else 0,
        )
        for path, queue in ({"root": Queue()} | queues).items()
    }


def lower(chance: random.Random, queues: dict[str, Queue], leaves: Collection[str]) -> dict[str, Queue]:
    """These queues; some leaves have a low maximum, none below what it is guaranteed."""
    chosen = {path for path in leaves if chance.random() < 0.5}
    return {path: _lower(chance, queue) if path in chosen else queue for path, queue in queues.items()}


def _lower(chance: random.Random, queue: Queue) -> Queue:
    most = {"vcore": max((queue.due or {"vcore": 0})["vcore"], 1000 * chance.randint(1, 4))}
    return replace(queue, most=min(most, queue.most or most, key=lambda each: each["vcore"]), users=None)


def with_quotas(chance: random.Random, queues: dict[str, Queue]) -> dict[str, Queue]:
    """These queues; some give back what they have too much, none when anything else happens."""
    return {
        path: replace(queue, quota_ms=1000 * chance.choice([1, 5, 20, 60]) + chance.randint(1, 499))
        if path != "root" and chance.random() < 0.6
        else queue
        for path, queue in queues.items()
    }


def jobs_of_walk(
    chance: random.Random, jobs: Sequence[Job], files: Sequence[dict[str, Queue]], *, stops: bool
) -> list[Job]:
    """These jobs: none is idle work, no gang is in a queue that is fair in one of the files, and some would stay."""
    fair = {path for queues in files for path, queue in queues.items() if queue.is_fair}
    return [
        replace(
            job,
            gang=job.gang and job.queue not in fair,
            tasks=tuple(replace(task, idle=False, unwilling=stops and chance.random() < 0.2) for task in job.tasks),
        )
        for job in jobs
    ]


def idle_beside(
    chance: random.Random, queues: dict[str, Queue], jobs: Sequence[Job]
) -> tuple[dict[str, Queue], list[Job]]:
    """Some of the work is idle, and some of it has some grace; maybe that of two leaves borrows below the root."""
    is_group = chance.random() < 0.5
    queues = {path: replace(queue, is_group=is_group and path == "root.c") for path, queue in queues.items()}
    return queues, [_maybe_idle(chance, job) for job in jobs]


def _maybe_idle(chance: random.Random, job: Job) -> Job:
    is_idle, grace_ms = not job.gang and chance.random() < 0.35, chance.choice([0, 0, 1_000, 5_000, 20_000])
    if not is_idle or any(task.required for task in job.tasks):
        return job
    return replace(job, tasks=tuple(replace(task, idle=True, grace_ms=grace_ms) for task in job.tasks))


def small_beside_large(
    chance: random.Random, queues: dict[str, Queue], jobs: Sequence[Job]
) -> tuple[dict[str, Queue], list[Job]]:
    """One queue alone is guaranteed anything, and its work is small: a large victim makes room for many of it."""
    queues = {path: replace(queue, due=None) for path, queue in queues.items()}
    queues["root.a"] = replace(queues["root.a"], most=None, users=None, due={"vcore": 1000 * chance.randint(3, 6)})
    return queues, [job if job.gang else _sized(chance, job) for job in jobs]


def _sized(chance: random.Random, job: Job) -> Job:
    is_small = chance.random() < 0.5
    amount = (("memory", 1), ("vcore", 500)) if is_small else (("memory", 3), ("vcore", 3000))
    tasks = [replace(task, amount=amount) for task in job.tasks]
    count = chance.randint(0, 4) if is_small else 0
    more = [replace(tasks[0], key=f"{job.name}-{len(tasks) + i}") for i in range(count)]
    return replace(job, queue="root.a" if is_small else job.queue, tasks=(*tasks, *more))


def daemons(chance: random.Random, jobs: Sequence[Job], nodes: Sequence[str]) -> list[Job]:
    """These jobs; each task of some requires one of the nodes."""
    return [_bound(chance, job, nodes) if not job.gang and chance.random() < 0.25 else job for job in jobs]


def _bound(chance: random.Random, job: Job, nodes: Sequence[str]) -> Job:
    tasks = (replace(task, required=chance.choice(nodes), zone="") for task in job.tasks)
    return replace(job, tasks=tuple(tasks))


def properties_of_walk(queue: Queue) -> dict[str, str]:
    """What a queue file says about such a queue."""
    return {
        "application.sort.policy": "fair" if queue.is_fair else "fifo",
        "application.sort.priority": "disabled" if queue.ignores_priority else "enabled",
        "quota.preemption.delay": f"{queue.quota_ms}ms" if queue.quota_ms else "",
        "preemption.delay": f"{queue.delay_ms}ms" if queue.delay_ms else "",
    }
