"""Windows, time limits and work that begins later, for the comparison of two simulators: drawn, and in our words."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from reference.plain_line import Job, Queue
from reference.plain_simulator import Order
from reference.plain_windows import Window

from fairlead.core.model.events import RemoveWindow, SetWindow
from fairlead.core.model.specs import WindowSpec

if TYPE_CHECKING:
    from reference.compared_simulators import World

QUEUES = ("root.a", "root.b", "root.c", "root.c.x")


def limited(chance: random.Random, jobs: list[Job]) -> list[Job]:
    """Of most work it is known how long it lasts at most."""

    def limit_ms(run_ms: int) -> int | None:
        return run_ms * chance.choice([2, 2, 3, 4]) // 2 if chance.random() < 0.85 else None

    tasks = ([replace(task, limit_ms=limit_ms(task.run_ms)) for task in job.tasks] for job in jobs)
    return [replace(job, tasks=tuple(each)) for job, each in zip(jobs, tasks, strict=True)]


def easy(chance: random.Random, made: World) -> World:
    """In most queues what is held back by a kept turn may pass it."""

    def lets_pass(queues: dict[str, Queue]) -> dict[str, Queue]:
        return {path: replace(queue, is_easy=chance.random() < 0.8) for path, queue in queues.items()}

    orders = (replace(each, queues=lets_pass(each.queues) if each.queues else None) for each in made.orders)
    return replace(made, queues=lets_pass(made.queues), orders=tuple(orders))


def begins(chance: random.Random, jobs: Iterable[Job]) -> list[Job]:
    """Some work is in line later than it comes; no gang may be."""
    return [job if job.gang or chance.random() < 0.5 else _later(chance, job) for job in jobs]


def _later(chance: random.Random, job: Job) -> Job:
    def at_ms() -> int:
        return job.at_ms + 1000 * chance.choice([0, 2, 10, 60]) + chance.randint(1, 999)

    together = at_ms()
    tasks = (replace(task, begin_ms=together if chance.random() < 0.5 else at_ms()) for task in job.tasks)
    return replace(job, tasks=tuple(tasks))


def windows(chance: random.Random, made: World, slower: int) -> Iterator[Order]:
    """Some windows: known from the beginning where there are gangs, of which the members would be kept from the places
    of their placeholders else.
    """
    begin_ms, end_ms = made.jobs[0].at_ms, made.jobs[-1].at_ms + 60_000 * slower
    has_gangs = any(job.gang for job in made.jobs)
    for number in range(chance.randint(1, 4)):
        # What happens at the very moment of something else is in no order that matters.
        start_ms = chance.randrange(begin_ms, end_ms) // 1000 * 1000 + 37 * number + 11
        length_ms = slower * 1000 * chance.randint(5, 60) + 307
        every_ms = length_ms + slower * 1000 * chance.randint(10, 200) + 13 if chance.random() < 0.3 else 0
        kind = chance.random()
        window = Window(
            f"w{number}",
            start_ms,
            length_ms,
            every_ms,
            nodes=tuple(node for node in made.nodes if chance.random() < 0.4) if chance.random() < 0.6 else (),
            queues=(chance.choice(QUEUES),) if kind < 0.3 and not has_gangs else (),
            users=(chance.choice("uvw"),) if 0.3 <= kind < 0.5 else (),
            stops=chance.random() < 0.5,
        )
        at_ms = begin_ms if has_gangs or chance.random() < 0.4 else chance.randrange(begin_ms, start_ms + length_ms)
        yield Order(at_ms, window=window)
        if every_ms:
            yield Order(end_ms + every_ms * chance.randint(1, 4), withdrawn=window.name)
        elif chance.random() < 0.3 and not has_gangs:
            yield Order(max(at_ms, start_ms) + chance.randint(1, length_ms), withdrawn=window.name)


def ends(orders: Iterable[Order]) -> Iterator[int]:
    """When windows end: a simulation in which nothing else is to come would be over before."""
    withdrawn = {order.withdrawn: order.at_ms for order in orders if order.withdrawn}
    for window in [order.window for order in orders if order.window is not None]:
        at_ms = window.start_ms + window.length_ms
        yield at_ms
        while window.every_ms and at_ms < withdrawn[window.name]:
            yield (at_ms := at_ms + window.every_ms)


def declared(order: Order) -> list[SetWindow | RemoveWindow]:
    """A window in our words, or that there is none any more."""
    window = order.window
    if window is None:
        return [RemoveWindow(order.withdrawn)]
    spec = WindowSpec(
        name=window.name,
        starts_ms=window.start_ms,
        length_ms=window.length_ms,
        every_ms=window.every_ms,
        nodes=window.nodes,
        queues=window.queues,
        users=window.users,
        stop_running=window.stops,
    )
    return [SetWindow(spec)]
