"""A workload that every place is given: a queue file, nodes, and jobs with their times.

Decides how it is read from a file or drawn from a seed, and what its jobs are in the scheduler's words. Knows no place.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml

from fairlead.core.model.constraints import HOSTNAME, IN, AffinityTerm, Constraints, Requirement, Taint, Toleration
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec

DATA = Path(__file__).parent / "data"
PODS_MAX = 110
PAUSE_MS = 10_000
"""From one happening to the next: whatever the scheduler wants to do by itself is done by then."""


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No other fields: a word that nobody reads would be a promise that nobody keeps."""


class TaintWords(Strict, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class NodeWords(Strict, frozen=True, kw_only=True):
    """A node; `vcore` in cores."""

    name: str
    vcore: int = 4
    labels: dict[str, str] = {}
    taints: tuple[TaintWords, ...] = ()


class JobWords(Strict, frozen=True, kw_only=True):
    """An application with one task of its name, or with `tasks` equal ones, `NAME-0` and so on. Times in seconds."""

    name: str
    at: int = 0
    runs: int = 100_000
    queue: str
    vcore: int = 1
    tasks: int = 0
    gang: bool = False
    cls: str = msgspec.field(default="", name="class")
    user: str = "nobody"
    labels: dict[str, str] = {}
    select: dict[str, str] = {}
    tolerate: tuple[str, ...] = ()
    """Keys of taints."""
    apart: dict[str, str] = {}
    """Not on a node with work that has these labels."""
    spare: bool = False
    """`allow-preemption` is false: taken as a victim only where there is nobody else."""
    idle: bool = False

    @property
    def names(self) -> list[str]:
        """Its tasks."""
        return [f"{self.name}-{n}" for n in range(self.tasks)] if self.tasks else [self.name]

    def runs_ms(self, task: str) -> int:
        """How long one of its tasks runs: each a little longer than the one before, so that no two end together."""
        return (self.runs + 7 * self.names.index(task)) * 1000


class Workload(Strict, frozen=True, kw_only=True):
    """All of it."""

    queues: str
    nodes: tuple[NodeWords, ...]
    jobs: tuple[JobWords, ...]

    def job_of(self, task: str) -> JobWords:
        """The job that a task belongs to."""
        return next(job for job in self.jobs if task in job.names)

    @property
    def last_ms(self) -> int:
        """When the last job comes."""
        return max(job.at for job in self.jobs) * 1000

    @property
    def classes(self) -> list[dict[str, Any]]:
        """The priority classes of the queue file."""
        return list(yaml.safe_load(self.queues).get("priorityclasses", ()))


def read(name: str) -> Workload:
    """The workload of a file, its queue file as text."""
    given = yaml.safe_load((DATA / f"{name}.yaml").read_text())
    given["queues"] = yaml.safe_dump(given["queues"], sort_keys=False)
    return msgspec.convert(given, Workload)


# -- in the scheduler's words ------------------------------------------------------------------------------------------


def node_spec(node: NodeWords) -> NodeSpec:
    """A node as a cluster of pods has it: it also says how many pods it takes."""
    return NodeSpec(
        id=node.name,
        capacity=Resources({"vcore": node.vcore * 1000, "memory": 16 << 30, "pods": PODS_MAX}),
        attributes={HOSTNAME: node.name, **node.labels},
        taints=tuple(Taint(t.key, t.value, t.effect) for t in node.taints),
    )


def application(job: JobWords) -> ApplicationSpec:
    """The application of a job."""
    return ApplicationSpec(id=job.name, queue=job.queue, user=job.user)


def asks(job: JobWords) -> list[AskSpec]:
    """The asks of a job, one for each of its tasks."""
    where = Constraints(
        selector=tuple(Requirement(key, IN, (value,)) for key, value in sorted(job.select.items())),
        tolerations=tuple(Toleration(key, "Exists") for key in job.tolerate),
        anti_affinity=tuple(
            AffinityTerm((Requirement(key, IN, (value,)),)) for key, value in sorted(job.apart.items())
        ),
    )
    one = AskSpec(
        application=job.name,
        key="",
        resources=Resources({"vcore": job.vcore * 1000, "pods": 1}),
        priority_class=job.cls,
        labels=job.labels,
        where=where,
        allow_preempt_self=not job.spare,
        idle=job.idle,
        grace_ms=0,
    )
    return [replace(one, key=name) for name in job.names]


# -- drawn -------------------------------------------------------------------------------------------------------------

DRAWN_QUEUES = """
priorityclasses:
  - {name: vital, value: 1000}
  - {name: calm, value: 500, preemptionPolicy: Never}
  - {name: usual, value: 100, globalDefault: true}
  - {name: low, value: 1}
partitions:
  - name: default
    preemption: {rule: priority}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: shop
            resources: {max: {vcore: 20}}
            queues:
              - {name: web, resources: {guaranteed: {vcore: 6}}}
              - {name: batch, properties: {application.sort.policy: fair}}
          - name: lab
            resources: {guaranteed: {vcore: 10}}
            limits:
              - {limit: one user, users: [ada], maxresources: {vcore: 5}}
          - {name: rest, properties: {priority.offset: "-50"}}
"""


@dataclass(frozen=True)
class Sizes:
    """How much is drawn."""

    nodes: int = 10
    at_once: int = 165
    one_by_one: int = 35


def drawn(seed: int, sizes: Sizes = Sizes()) -> Workload:
    """A workload at random: many jobs at once, then one by one; some end meanwhile. No two things happen together."""
    chance = random.Random(seed)
    nodes = tuple(
        NodeWords(
            name=f"n{n:02}",
            labels={"disk": chance.choice(["ssd", "tape"]), "zone": chance.choice("abc")},
            taints=(TaintWords(key="gpu"),) if n % 5 == 4 else (),
        )
        for n in range(sizes.nodes)
    )
    moments = iter(chance.sample(range(1, 100_000), sizes.one_by_one))
    # Ends never coincide with what comes: those are at whole seconds of ten, these are not.
    jobs = []
    for number in range(sizes.at_once + sizes.one_by_one):
        jobs.append(
            JobWords(
                name=f"p-{number:03}",
                at=0 if number < sizes.at_once else next(moments) * 10,
                runs=chance.randrange(1, 60_000) * 10 + 1 + number % 9 if chance.random() < 0.6 else 10_000_001,
                queue=chance.choice(["root.shop.web", "root.shop.batch", "root.lab", "root.rest"]),
                vcore=chance.choice([1, 1, 1, 2, 3]),
                cls=chance.choice(["vital", "calm", "usual", "usual", "low", "low"]),
                user=chance.choice(["ada", "bob", "eve"]),
                labels={"app": chance.choice(["db", "web"])},
                select=chance.choice([{}, {}, {}, {"disk": "ssd"}, {"zone": "a"}]),
                tolerate=chance.choice([(), (), ("gpu",)]),
                apart=chance.choice([{}] * 9 + [{"app": "db"}]),
            )
        )
    return Workload(queues=DRAWN_QUEUES, nodes=nodes, jobs=tuple(sorted(jobs, key=lambda job: (job.at, job.name))))
