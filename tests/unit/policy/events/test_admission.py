"""Admission: classes and quotas when work is submitted, and that what was admitted is counted exactly."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from invariants.books import check_books

from fairlead.config import load_text
from fairlead.core.model import reasons
from fairlead.core.model.constraints import Requirement
from fairlead.core.model.decisions import (
    AskRejected,
    ConfigurationRejected,
    Decision,
    DeclarationChanged,
    DeclarationRejected,
)
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    MoveApplication,
    Release,
    RemoveApplication,
    RemoveNode,
    RemovePriorityClass,
    RemoveQuota,
    SetPriority,
    SetPriorityClass,
    SetQuota,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, PriorityClassSpec, QuotaSpec
from fairlead.journal.codec import decode_event, encode
from fairlead.scheduler import Scheduler

FILE = """
partitions:
  - name: default
    preemption: {rule: priority}
    queues: [{name: root, submitacl: "*", queues: [{name: a}, {name: p, parent: true, queues: [{name: b}, {name: c}]}]}]
"""


def cluster(file: str = FILE, nodes: int = 1) -> Scheduler:
    s = Scheduler(load_text(file))
    for i in range(nodes):
        s.handle(AddNode(NodeSpec(id=f"n{i}", capacity=Resources({"vcore": 4}))), 0)
    for app, queue in (("x", "root.a"), ("b", "root.p.b"), ("c", "root.p.c")):
        s.handle(AddApplication(ApplicationSpec(id=app, queue=queue)), 0)
    return s


def ask(s: Scheduler, app: str, key: str, amount: int = 1, **more: Any) -> reasons.Reason | None:
    """Why it was refused, or None."""
    spec = AskSpec(application=app, key=key, resources=Resources({"vcore": amount}), **more)
    found = [d.reason for d in s.handle(AddAsks((spec,)), s.cluster.now_ms) if isinstance(d, AskRejected)]
    check_books(s)
    return found[0] if found else None


def make(s: Scheduler, name: str, value: int = 10, **more: Any) -> list[Decision]:
    return s.handle(SetPriorityClass(PriorityClassSpec(name=name, value=value, **more), "root"), s.cluster.now_ms)


def limit(s: Scheduler, name: str, queue: str, amount: int, *classes: str) -> list[Decision]:
    scopes = (Requirement("PriorityClass", "In", classes),) if classes else ()
    spec = QuotaSpec(name=name, queue=queue, resources=Limits({"vcore": amount}), scopes=scopes)
    decisions = s.handle(SetQuota(spec, "root"), s.cluster.now_ms)
    check_books(s)
    return decisions


def used(s: Scheduler, name: str) -> int:
    [quota] = [quota for quota in s.cluster.admission.quotas.by_name() if quota.spec.name == name]
    return quota.used.get("vcore", 0)


def spec_of(s: Scheduler, app: str, key: str) -> AskSpec:
    return s.cluster.partitions["default"].applications[app].asks[key].spec


def test_orders_are_answered() -> None:
    """With who gave them, and what came of it."""
    s = cluster()
    assert make(s, "c") == [DeclarationChanged("priority-class", "c", "added", "root")]
    assert make(s, "c") == []
    assert make(s, "c", 11) == [DeclarationChanged("priority-class", "c", "changed", "root")]
    [refused] = make(s, "system-c")
    assert isinstance(refused, DeclarationRejected)
    assert (refused.kind, refused.name) == ("priority-class", "system-c")
    removed = s.handle(RemovePriorityClass("c", "ann"), 0)
    assert removed == [DeclarationChanged("priority-class", "c", "removed", "ann")]
    assert limit(s, "q", "root.a", 5) == [DeclarationChanged("quota", "q", "added", "root")]
    assert s.handle(RemoveQuota("q", "ann"), 0) == [DeclarationChanged("quota", "q", "removed", "ann")]


def test_the_class_is_resolved_when_work_is_admitted() -> None:
    """Value, name and policy are then the ask's own."""
    s = cluster()
    make(s, "calm", 7, preemption_policy="Never")
    make(s, "usual", 3, global_default=True)
    assert ask(s, "x", "1", priority_class="calm") is None
    assert ask(s, "x", "2") is None
    assert ask(s, "x", "3", priority=9) is None
    found = [(a.priority, a.priority_class, a.allow_preempt_other) for a in (spec_of(s, "x", k) for k in "123")]
    assert found == [(7, "calm", False), (3, "usual", True), (9, "", True)]


def test_refusals_are_typed() -> None:
    """With what is known, and the numbers."""
    s = cluster()
    make(s, "c", 10)
    limit(s, "q", "root.p", 3, "c")
    unknown = ask(s, "x", "1", priority_class="d")
    assert unknown == reasons.UnknownPriorityClass("d", ("system-node-critical", "system-cluster-critical", "c"))
    assert ask(s, "x", "1", priority_class="c", priority=3) == reasons.PriorityMismatch("c", 10, 3)
    assert ask(s, "b", "1", 2, priority_class="c") is None
    over = ask(s, "c", "1", 2, priority_class="c")
    assert over == reasons.QuotaExceeded("q", "root.p", {"vcore": 2}, {"vcore": 2}, {"vcore": 3})
    make(s, "l", 1, limited=True)
    assert ask(s, "b", "2", priority_class="l") == reasons.ClassNotAllowed("l", "root.p.b")


def test_each_ask_of_a_request_counts_for_the_next() -> None:
    """The first ones are admitted, the others are not."""
    s = cluster()
    limit(s, "q", "root.a", 3)
    asks = tuple(AskSpec(application="x", key=str(i), resources=Resources({"vcore": 1})) for i in range(5))
    refused = [d.key for d in s.handle(AddAsks(asks), 0) if isinstance(d, AskRejected)]
    assert refused == ["3", "4"]


def test_work_that_is_there_already_is_never_refused() -> None:
    """It is reported with its node: an unknown class, a full quota and a limited class do not matter; it counts."""
    s = cluster()
    make(s, "l", 5, limited=True)
    limit(s, "q", "root.a", 1)
    assert ask(s, "x", "1", 2, priority_class="gone", priority=4, node="n0") is None
    assert ask(s, "x", "2", 1, priority_class="l", node="n0") is None
    assert [spec_of(s, "x", k).priority for k in "12"] == [4, 5]
    assert used(s, "q") == 3


def test_an_end_makes_room_in_the_quota() -> None:
    """Whether the work ran, waited, or went with its application or node."""
    s = cluster()
    limit(s, "q", "root", 4)
    for key in "1234":
        assert ask(s, "x", key) is None
    s.schedule(0, limit=2)
    assert used(s, "q") == 4
    s.handle(Release("x", "1", Cause.FINISHED), 0)
    s.handle(Release("x", "4"), 0)
    check_books(s)
    assert used(s, "q") == 2
    s.handle(RemoveNode("n0"), 0)
    check_books(s)
    assert used(s, "q") == 1
    s.handle(RemoveApplication("x"), 0)
    check_books(s)
    assert used(s, "q") == 0


def test_a_waiting_ask_grows_only_into_its_quota() -> None:
    """A running one is as large as it says it is; shrinking is always possible."""
    s = cluster()
    limit(s, "q", "root.a", 4)
    assert ask(s, "x", "1", 2) is None
    assert isinstance(ask(s, "x", "1", 5), reasons.QuotaExceeded)
    assert used(s, "q") == 2
    assert ask(s, "x", "1", 4) is None
    s.schedule(0)
    assert ask(s, "x", "1", 6) is None
    assert used(s, "q") == 6
    assert ask(s, "x", "2", 1) is not None
    assert ask(s, "x", "1", 1) is None
    assert used(s, "q") == 1


def test_work_of_a_gang_needs_no_room_beside_its_placeholders() -> None:
    s = cluster()
    limit(s, "exact", "root.a", 3)
    for n in range(2):
        assert ask(s, "x", f"place-{n}", placeholder=True, task_group="g") is None
    assert ask(s, "x", "other") is None
    for n in range(2):
        assert ask(s, "x", f"real-{n}", task_group="g") is None
    assert used(s, "exact") == 5
    beyond = ask(s, "x", "real-2", task_group="g")
    assert isinstance(beyond, reasons.QuotaExceeded)
    assert beyond.used == {"vcore": 3}
    assert isinstance(ask(s, "x", "plain"), reasons.QuotaExceeded)
    assert isinstance(ask(s, "x", "place-2", placeholder=True, task_group="g"), reasons.QuotaExceeded)
    assert isinstance(ask(s, "x", "of-another-group", task_group="h"), reasons.QuotaExceeded)
    s.schedule(0)
    check_books(s)


def test_placeholders_need_no_room_beside_the_work_that_waits_for_them() -> None:
    s = cluster()
    limit(s, "exact", "root.a", 2)
    for n in range(2):
        assert ask(s, "x", f"real-{n}", task_group="g") is None
    for n in range(2):
        assert ask(s, "x", f"place-{n}", placeholder=True, task_group="g") is None
    assert isinstance(ask(s, "x", "place-2", placeholder=True, task_group="g"), reasons.QuotaExceeded)
    s = cluster()
    limit(s, "exact", "root.a", 1)
    assert ask(s, "x", "real", task_group="g") is None
    s.schedule(0)  # It runs: what it has nothing else can stand in for.
    assert isinstance(ask(s, "x", "place", placeholder=True, task_group="g"), reasons.QuotaExceeded)


def test_a_gang_of_several_groups_needs_no_room_for_work_beside_its_placeholders() -> None:
    members = [("driver", "d"), ("worker-1", "w"), ("worker-2", "w")]
    for placeholders_first in (True, False):
        s = cluster()
        limit(s, "exact", "root.a", 3)
        for placeholder in (placeholders_first, not placeholders_first):
            for key, group in members:
                name = f"{key}-place" if placeholder else key
                assert ask(s, "x", name, placeholder=placeholder, task_group=group) is None
        assert used(s, "exact") == 6
        for group, placeholder in (("d", False), ("d", True), ("w", False), ("w", True), ("other", False)):
            more = ask(s, "x", f"more-{group}-{placeholder}", placeholder=placeholder, task_group=group)
            assert isinstance(more, reasons.QuotaExceeded)
            assert more.used == {"vcore": 3}
        check_books(s)


def test_work_that_is_moved_counts_where_it_is() -> None:
    """Even above the quota there."""
    s = cluster()
    limit(s, "a", "root.a", 9)
    limit(s, "p", "root.p", 1)
    ask(s, "x", "1", 2)
    ask(s, "x", "2", 2)
    s.schedule(0, limit=1)
    s.handle(MoveApplication("x", "root.p.c", "root"), 0)
    check_books(s)
    assert (used(s, "a"), used(s, "p")) == (0, 4)


def test_a_priority_that_an_administrator_gives_leaves_the_class() -> None:
    """The work stays under the quota of the class that it was admitted with."""
    s = cluster()
    make(s, "c", 10)
    limit(s, "q", "root.a", 1, "c")
    ask(s, "x", "1", priority_class="c")
    s.handle(SetPriority("x", "1", 99), 0)
    check_books(s)
    assert used(s, "q") == 1


def test_a_file_with_a_second_default_is_refused_as_a_whole() -> None:
    """The old one goes on."""
    s = cluster()
    make(s, "own", 5, global_default=True)
    new = load_text("priorityclasses: [{name: f, value: 1, globalDefault: true}]\n" + FILE)
    [refused] = s.handle(Configure(new), 0)
    assert isinstance(refused, ConfigurationRejected)
    assert "own" in refused.reason.sentence()
    assert s.cluster.admission.classes.get("f") is None


def test_a_removed_partition_takes_its_work_out_of_the_quotas() -> None:
    """They hold for all partitions together."""
    two = FILE + "  - {name: other, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}\n"
    s = cluster(two)
    limit(s, "q", "root.a", 3)
    s.handle(AddApplication(ApplicationSpec(id="y", queue="root.a", partition="other")), 0)
    spec = AskSpec(application="y", key="1", resources=Resources({"vcore": 2}))
    s.handle(AddAsks((spec,), "other"), 0)
    assert used(s, "q") == 2
    assert isinstance(ask(s, "x", "1", 2), reasons.QuotaExceeded)
    s.handle(Configure(load_text(FILE)), 0)
    check_books(s)
    assert used(s, "q") == 0


def test_a_restart_knows_classes_quotas_and_what_is_used() -> None:
    """The state that was written down and read says the same, and decides the same."""
    s = cluster(
        "priorityclasses: [{name: f, value: 2}]\nquotas: [{name: qf, queue: root, resources: {vcore: 1}}]\n" + FILE
    )
    make(s, "c", 10, limited=True)
    limit(s, "q", "root.a", 4000, "c")
    ask(s, "x", "1", 500, priority_class="c")
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    check_books(again)
    assert again.dump() == s.dump()
    for each in (s, again):
        assert used(each, "q") == 500
        assert isinstance(ask(each, "x", "2", 600), reasons.QuotaExceeded)
        assert isinstance(make(each, "f", 3)[0], DeclarationRejected)


def test_a_state_from_before_there_were_classes_is_read() -> None:
    """It has none."""
    state = cluster().dump()
    del state["admission"]
    assert [c.name for c in Scheduler.load(state).cluster.admission.classes] == [
        "system-node-critical",
        "system-cluster-critical",
    ]


def test_the_orders_can_be_journalled() -> None:
    """What is read is what was written."""
    quota = QuotaSpec(
        name="q", queue="root", resources=Limits({"vcore": 1}), scopes=(Requirement("PriorityClass", "In", ("c",)),)
    )
    orders: Sequence[Any] = (
        SetPriorityClass(PriorityClassSpec(name="c", value=1, limited=True), "ann"),
        RemovePriorityClass("c", "ann"),
        SetQuota(quota, "ann"),
        RemoveQuota("q"),
        Configure(
            load_text("priorityclasses: [{name: f, value: 2}]\nbudgets: [{name: b, minAvailable: 50%}]\n" + FILE)
        ),
    )
    assert [decode_event(encode(order)) for order in orders] == list(orders)


def test_whatever_happens_quotas_count_what_is_there() -> None:
    """Random orders, submissions, ends, moves and restarts; the check counts anew after each."""
    for seed in range(8):
        rng = random.Random(seed)
        s = cluster(nodes=3)
        for step in range(150):
            _random_step(s, rng, step)
            check_books(s)
            if step % 50 == 49:
                s = Scheduler.load(json.loads(json.dumps(s.dump())))
                check_books(s)


def _random_step(s: Scheduler, rng: random.Random, step: int) -> None:
    name, app = rng.choice("cdef"), rng.choice(["x", "b", "c"])
    at = s.cluster.now_ms + rng.choice([0, 100])
    match rng.randrange(9):
        case 0:
            spec = PriorityClassSpec(name=name, value=rng.randrange(9), global_default=rng.random() < 0.2)
            s.handle(SetPriorityClass(spec), at)
        case 1:
            s.handle(RemovePriorityClass(name), at)
        case 2:
            operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
            scope = Requirement("PriorityClass", operator, (name,) if operator.endswith("In") else ())
            queue = rng.choice(["root", "root.a", "root.p", "root.p.b"])
            quota = QuotaSpec(name=name, queue=queue, resources=Limits({"vcore": rng.randrange(9)}), scopes=(scope,))
            s.handle(SetQuota(quota), at)
        case 3:
            s.handle(RemoveQuota(name), at)
        case 4:
            s.handle(MoveApplication(app, rng.choice(["root.a", "root.p.b", "root.p.c"])), at)
        case 5:
            s.handle(Release(app, str(rng.randrange(step + 1)), rng.choice([Cause.FINISHED, Cause.STOPPED_BY_RM])), at)
        case 6:
            s.schedule(at, limit=2)
        case _:
            named = rng.choice(["", name])
            key = str(rng.choice([step, rng.randrange(step + 1)]))
            spec_ = AskSpec(
                application=app, key=key, resources=Resources({"vcore": rng.randrange(1, 4)}), priority_class=named
            )
            s.handle(AddAsks((spec_,)), at)
