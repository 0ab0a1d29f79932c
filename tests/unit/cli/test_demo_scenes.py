"""The demo's sample workload does what the demo says, with the built-in queues, on any machine."""

from __future__ import annotations

from fairlead.cli import demo
from fairlead.cli.submit import describe
from fairlead.cli.values import parse_amount
from fairlead.config import default_text, load_text
from fairlead.core.model.decisions import Allocated, Decision, Evict
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Configure, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.scheduler import Scheduler
from fairlead.wire.fields import with_vcore


class Stage:
    """The story up to some moment, in virtual time; work keeps running unless it is told to stop."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        capacity = {
            "vcore": parse_amount("vcore", str(demo.CORES), "demo"),
            "memory": parse_amount("memory", demo.MEMORY, "demo"),
        }
        self.scheduler.handle(Configure(load_text(default_text())), 0)
        self.scheduler.handle(AddNode(NodeSpec(id="here", capacity=Resources(capacity))), 0)

    def play(self, scene: demo.Scene) -> list[Decision]:
        """What the scheduler decides when the jobs of a scene arrive and the evicted ones have gone."""
        now = int(scene.at_s * 1000)
        for job in scene.jobs:
            body = describe(job, job["name"]).body
            name = job["name"]
            self.scheduler.handle(AddApplication(ApplicationSpec(id=name, queue=job["queue"], user="ann")), now)
            ask = AskSpec(
                application=name,
                key=name,
                resources=Resources(with_vcore(body["resources"])),
                priority=body["priority"],
            )
            self.scheduler.handle(AddAsks((ask,)), now)
        decided = self.scheduler.schedule(now)
        for decision in [d for d in decided if isinstance(d, Evict)]:
            cause = Cause.PREEMPTED_BY_SCHEDULER
            decided += self.scheduler.handle(Release(decision.application, decision.key, cause), now)
        return decided + self.scheduler.schedule(now)


def placed(decided: list[Decision]) -> set[str]:
    return {d.key for d in decided if isinstance(d, Allocated)}


def test_one_waits_and_one_preempts() -> None:
    """Scene by scene, as they are announced."""
    fill, wait, preempt, too_large, fail = demo.scenes()
    stage = Stage()
    assert placed(stage.play(fill)) == {"train", "nightly-report", "thumbnails"}

    assert placed(stage.play(wait)) == set()
    reason = stage.scheduler.why("mail-digest", "mail-digest")
    assert reason is not None
    assert reason.code == "cluster-full"

    decided = stage.play(preempt)
    assert {d.key for d in decided if isinstance(d, Evict)} == {"nightly-report", "thumbnails"}
    assert placed(decided) == {"notebook"}

    assert placed(stage.play(too_large)) == set()
    reason = stage.scheduler.why("too-large", "too-large")
    assert reason is not None
    assert reason.code == "too-big-for-every-node"

    assert placed(stage.play(fail)) == set()


def test_what_to_try_next_can_be_pasted() -> None:
    """Paths with blanks are quoted, and a command that the shell would not find is put on its path."""
    lines = demo.where_to_look("/a b/bin", "/c d/s.sock", "http://127.0.0.1:9080", "/c d")
    assert "  export FAIRLEAD_SOCKET='/c d/s.sock' PATH='/a b/bin':$PATH" in lines
    assert all("PATH" not in line for line in demo.where_to_look("", "/s.sock", "http://127.0.0.1:9080", "/c"))
