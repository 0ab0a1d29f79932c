"""Preemption by priority among tainted nodes."""

from __future__ import annotations

from fairlead.config import load_text
from fairlead.core.model.constraints import Constraints, Taint, Toleration
from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import AddApplication, AddAsks, AddNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.scheduler import Scheduler

TAINTED = """
partitions:
  - name: default
    preemption: {rule: priority}
    queues: [{name: root, submitacl: "*", queues: [{name: q}]}]
"""


def test_a_tainted_node_is_no_candidate_for_plain_work() -> None:
    """Row 8: every filter counts, also for work that says nothing about where it may run."""
    scheduler = Scheduler(load_text(TAINTED))
    keep_off = (Taint("q", "v", "NoSchedule"),)
    for name, taints in (("n1", ()), ("n2", keep_off)):
        scheduler.handle(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": 2}), taints=taints)), 0)
    scheduler.handle(AddApplication(ApplicationSpec(id="a", queue="root.q", user="u")), 0)
    tolerates = Constraints(tolerations=(Toleration("q", "Exists"),))
    amount = Resources({"vcore": 2})
    there = AskSpec(application="a", key="there", resources=amount, node="n2", where=tolerates)
    here = AskSpec(application="a", key="here", resources=amount, node="n1", priority=5)
    scheduler.handle(AddAsks((there, here)), 0)
    scheduler.handle(AddAsks((AskSpec(application="a", key="high", resources=amount, priority=9),)), 0)
    assert [(d.key, d.node) for d in scheduler.schedule(1) if isinstance(d, Evict)] == [("here", "n1")]
