"""What ends work otherwise than by itself, and what bounds that, for the comparison of two simulators: lost nodes,
retries, least run times, budgets, and bounds on evictions, drawn.
"""

from __future__ import annotations

import random
from dataclasses import replace

from reference.compared_world import World
from reference.plain_line import Budget, Job, Task

SLOWER = 20
"""So many times as long all takes where hours count."""


def with_least(chance: random.Random, made: World) -> World:
    """Some work is no victim before it has run for some seconds."""
    made.queues = {
        path: replace(queue, least_ms=1000 * chance.choice([1, 5, 20, 60])) if chance.random() < 0.2 else queue
        for path, queue in made.queues.items()
    }
    least = {job.name: 1000 * chance.choice([1, 5, 20, 60]) for job in made.jobs if chance.random() < 0.5}
    made.jobs = [
        replace(job, tasks=tuple(replace(task, least_ms=least.get(job.name, 0)) for task in job.tasks))
        for job in made.jobs
    ]
    return made


def with_bounds(chance: random.Random, made: World) -> World:
    """Budgets of teams, and queues that may lose so much within an hour; all takes longer."""
    some = chance.random
    made.queues = {
        path: replace(queue, losses=chance.randint(1, 6)) if some() < 0.3 else queue
        for path, queue in made.queues.items()
    }
    made.budgets = tuple(
        Budget(team, stay=chance.randint(0, 3)) if some() < 0.5 else Budget(team, away=chance.randint(0, 2))
        for team in "rst"
        if some() < 0.7
    )
    made.faults = tuple((at_ms * SLOWER, node) for at_ms, node in made.faults)
    made.jobs = [
        replace(job, at_ms=job.at_ms * SLOWER, tasks=tuple(_slower(chance, task) for task in job.tasks))
        for job in made.jobs
    ]
    return made


def _slower(chance: random.Random, task: Task) -> Task:
    team = chance.choice(["r", "s", "t", ""])
    return replace(task, run_ms=task.run_ms * SLOWER, least_ms=task.least_ms * SLOWER, team=team)


def with_faults(chance: random.Random, made: World) -> World:
    """Nodes are lost and come back."""
    faults = []
    for node in made.nodes:
        at_ms = made.jobs[0].at_ms + 1000 * chance.randint(1, 120)
        for _ in range(chance.randint(0, 3)):
            faults += [(at_ms, node), (back_ms := at_ms + 1000 * chance.choice([1, 5, 20, 60]), node)]
            at_ms = back_ms + 1000 * chance.randint(1, 200)
    made.faults = tuple(sorted(faults))
    return made


def with_retries(chance: random.Random, made: World) -> World:
    """Some work is tried again, and some of that fails."""
    return replace(made, jobs=[_tried_again(chance, job) if chance.random() < 0.5 else job for job in made.jobs])


def _tried_again(chance: random.Random, job: Job) -> Job:
    retries, backoff_ms = chance.randint(0, 3), 1000 * chance.choice([0, 0, 1, 7, 30])
    tasks = (
        replace(task, retries=retries, backoff_ms=backoff_ms, fails=chance.random() < 0.3 and task.run_ms < 20_000)
        for task in job.tasks
    )
    return replace(job, tasks=tuple(tasks))
