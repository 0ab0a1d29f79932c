"""A simulated past, recorded and simulated again by the same queue file: the same runs on the same nodes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from reference.compared_simulators import file_of, ours_of, world

from fairlead.config import load_text
from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import Event
from fairlead.core.model.specs import ClusterSpec, NodeSpec, RetrySpec
from fairlead.sim.attempts import Settings
from fairlead.sim.engine import Engine
from fairlead.sim.jobs import Job
from fairlead.sim.workloads.recorded import Moment, recorded

Runs = list[tuple[str, str, int, int]]
PATIENT = RetrySpec(limit=1_000)
"""What is stopped comes back by itself: what its owner submits again is a task of its own."""


class Moments(list[Moment]):
    """A recorder that keeps what a journal would."""

    def event(self, now_ms: int, event: Event, decisions: Sequence[Decision]) -> None:
        self.append((now_ms, event, tuple(decisions)))

    def run(self, now_ms: int, limit: int | None, decisions: Sequence[Decision]) -> None:
        del limit
        self.append((now_ms, None, tuple(decisions)))


def simulated(spec: ClusterSpec, nodes: Sequence[NodeSpec], jobs: Sequence[Job]) -> tuple[Runs, Moments]:
    """Task, node, start and end of each run; and what was recorded."""
    moments = Moments()
    engine = Engine(spec, nodes, jobs, settings=Settings(recorder=moments))
    engine.run()
    columns = engine.columns
    tasks = (columns.names[row].rpartition("/")[2] for row in columns.run_task)
    where = (columns.nodes.values[node] for node in columns.run_node)
    return sorted(zip(tasks, where, columns.run_start_ms, columns.run_end_ms, strict=True)), moments


@pytest.mark.parametrize("first", [0, 131_000, 520_000])
def test_it_is_as_it_was(first: int) -> None:
    """By every rule of preemption, with and without retries, budgets and kept turns; nothing is there that the notes
    would count: no gang that was never whole, and nothing that ran out of attempts.
    """
    runs = 0
    for number in range(first, first + 3):
        made = world(number)
        nodes, jobs = ours_of(replace(made, jobs=[replace(job, gang=False) for job in made.jobs]))
        own = [tuple(replace(t, ask=replace(t.ask, retry=PATIENT), exit_code=0) for t in job.tasks) for job in jobs]
        jobs = [replace(job, tasks=tasks) for job, tasks in zip(jobs, own, strict=True)]
        rule = random.Random(number).choice([made.rule, "guarantee"])
        text = file_of(made).replace(f'"rule": "{made.rule}"', f'"rule": "{rule}"')
        past, moments = simulated(load_text(text), nodes, jobs)
        again = recorded(moments, "past")
        found, _ = simulated(load_text(text), again.nodes, again.jobs)
        assert found == past, number
        runs += len(past)
    assert runs > 100
