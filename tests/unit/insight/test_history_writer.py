"""The history writer: what happens, told as event records with YuniKorn's numbers."""

from __future__ import annotations

from typing import Any

from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    DrainNode,
    Event,
    MoveApplication,
    Release,
    RemoveApplication,
    RemoveNode,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    RetrySpec,
    RuleSpec,
)
from fairlead.insight.history_records import Record, as_json, cut
from fairlead.insight.history_writer import HistoryWriter
from fairlead.scheduler import Scheduler

REQUEST, APP, NODE, QUEUE, USERGROUP = 1, 2, 3, 4, 5
NONE, SET, ADD, REMOVE = 0, 1, 2, 3


class Told:
    """A scheduler with a history writer beside it."""

    def __init__(self, *leaves: QueueSpec, **partition: Any) -> None:
        self.scheduler = Scheduler(config(*leaves, **partition))
        self.writer = HistoryWriter(self.scheduler)
        self.now = 0

    def __call__(self, *events: Event) -> list[Record]:
        """Each event, then a run of scheduling; all records."""
        records: list[Record] = []
        for event in events:
            decisions = self.scheduler.handle(event, self.now)
            records += self.writer.write(self.now, event, decisions, self.scheduler)
        records += self.writer.write(self.now, None, self.scheduler.schedule(self.now), self.scheduler)
        return records + self.writer.look_at_new(self.now, self.scheduler)

    def wait(self, ms: int) -> list[Record]:
        """Time passes."""
        self.now += ms
        return self()


def config(*leaves: QueueSpec, **partition: Any) -> ClusterSpec:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves or (QueueSpec(name="a"),))
    return ClusterSpec(partitions=(PartitionSpec(root=root, **partition),))


def node(id_: str = "n1", vcore: int = 10) -> AddNode:
    return AddNode(NodeSpec(id=id_, capacity=Resources({"vcore": vcore})))


def app(id_: str = "app", queue: str = "root.a", **more: Any) -> AddApplication:
    return AddApplication(ApplicationSpec(id=id_, queue=queue, user="ada", **more))


def ask(key: str = "k", vcore: int = 2, of: str = "app", **more: Any) -> AddAsks:
    return AddAsks((AskSpec(application=of, key=key, resources=Resources({"vcore": vcore}), **more),))


def short(records: list[Record]) -> list[tuple[Any, ...]]:
    """Type, change, detail, object, reference, vcore."""
    return [(r.type, r.change, r.detail, r.object, r.reference, dict(r.amount).get("vcore")) for r in records]


def test_a_node_comes_changes_and_goes() -> None:
    """Whether it takes work comes first; the root's maximum follows each time."""
    told = Told()
    assert short(told(node())) == [
        (NODE, SET, 302, "n1", "", None),
        (NODE, ADD, 0, "n1", "", 10),
        (QUEUE, SET, 403, "root", "", 10),
    ]
    assert short(told(UpdateNode("n1", Resources({"vcore": 20})))) == [
        (NODE, SET, 304, "n1", "", 20),
        (QUEUE, SET, 403, "root", "", 20),
    ]
    assert [r.message for r in told(DrainNode("n1"), UndrainNode("n1"))] == ["schedulable: false", "schedulable: true"]
    assert short(told(RemoveNode("n1"))) == [(NODE, REMOVE, 300, "n1", "", 20), (QUEUE, SET, 403, "root", "", None)]
    assert told(DrainNode("n1")) == []


def test_an_application_runs_and_ends() -> None:
    """From its creation to its removal, with its ask, its allocation and what its user uses."""
    told = Told()
    told(node())
    assert short(told(app(), ask())) == [
        (APP, ADD, 203, "app", "", None),
        (QUEUE, ADD, 405, "root.a", "app", None),
        (APP, SET, 204, "app", "", None),
        (APP, ADD, 201, "app", "k", 2),
        (APP, ADD, 200, "app", "k", 2),
        (NODE, ADD, 303, "n1", "k", 2),
        (USERGROUP, ADD, 603, "ada", "root.a", 2),
        (APP, SET, 206, "app", "", None),
    ]
    assert short(told(Release("app", "k", Cause.FINISHED))) == [
        (APP, REMOVE, 500, "app", "k", 2),
        (NODE, REMOVE, 303, "n1", "k", 2),
        (USERGROUP, REMOVE, 603, "ada", "root.a", 2),
        (APP, SET, 207, "app", "", None),
    ]
    assert short(told.wait(30_000)) == [
        (APP, SET, 208, "app", "", None),
        (QUEUE, REMOVE, 405, "root.a", "app", None),
        (APP, REMOVE, 0, "app", "", None),
    ]
    assert short(told.wait(72 * 3_600_000)) == [(APP, SET, 212, "app", "", None)]
    assert told.writer.apps == {}


def test_a_waiting_ask_is_withdrawn() -> None:
    """It is told as cancelled."""
    told = Told()
    told(app(), ask())
    assert (APP, REMOVE, 100, "app", "k", 2) in short(told(Release("app", "k")))


def test_an_application_is_removed_with_all_it_has() -> None:
    """What ran and what waited."""
    told = Told()
    told(node(), app(), ask("runs", 8), ask("waits", 8))
    assert short(told(RemoveApplication("app"))) == [
        (APP, REMOVE, 500, "app", "runs", 8),
        (NODE, REMOVE, 303, "n1", "runs", 8),
        (USERGROUP, REMOVE, 603, "ada", "root.a", 8),
        (APP, REMOVE, 100, "app", "waits", 8),
        (QUEUE, REMOVE, 405, "root.a", "app", None),
        (APP, REMOVE, 0, "app", "", None),
    ]


def test_a_rejected_application_says_why() -> None:
    """Its reason is the message; nothing is kept of it."""
    told = Told()
    records = told(app(queue="root.none"))
    assert short(records) == [(APP, ADD, 203, "app", "", None), (APP, SET, 202, "app", "", None)]
    assert "root.none" in records[1].message or "placement" in records[1].message
    assert told.writer.apps == {}


def test_a_second_submission_does_not_harm_the_first() -> None:
    """It is rejected; the one that is there keeps its asks."""
    told = Told()
    told(node(), app(), ask())
    assert [r.detail for r in told(app())] == [202]
    assert told.writer.apps["default", "app"].asks["k"].node == "n1"


def test_an_allocation_is_lost_with_its_node() -> None:
    """The detail says that the node was removed."""
    told = Told()
    told(node(), app(), ask())
    assert short(told(RemoveNode("n1")))[:3] == [
        (APP, REMOVE, 504, "app", "k", 2),
        (NODE, REMOVE, 303, "n1", "k", 2),
        (USERGROUP, REMOVE, 603, "ada", "root.a", 2),
    ]


def test_an_allocation_that_is_there_already_was_never_asked_for() -> None:
    """Allocation, but no request."""
    told = Told()
    told(node(), app())
    assert [r.detail for r in told(ask(node="n1"))] == [204, 200, 303, 603, 206]


def test_a_resized_allocation_changes_the_use_of_its_user() -> None:
    """The old size is taken, the new one given."""
    told = Told()
    told(node(), app(), ask())
    assert short(told(ask(vcore=5))) == [
        (USERGROUP, REMOVE, 603, "ada", "root.a", 2),
        (USERGROUP, ADD, 603, "ada", "root.a", 5),
    ]


def test_what_does_not_fit_in_its_queue_is_told_and_that_it_does_later() -> None:
    """Once each, with the numbers."""
    told = Told(QueueSpec(name="a", max=Limits({"vcore": 3})))
    told(node(), app(), ask("first", 2))
    held = told(ask("second", 2))[-1]
    assert held.message == (
        "Request 'second' does not fit in queue 'root.a' (requested map[vcore:2], available map[vcore:1])"
    )
    assert (held.type, held.object, held.reference) == (REQUEST, "second", "app")
    later = told(Release("app", "first", Cause.FINISHED))
    assert "Request 'second' has become schedulable in queue 'root.a'" in [r.message for r in later]


def test_an_application_that_may_not_run_yet_is_told() -> None:
    """By its queue (213, 214), once, however many asks it has."""
    told = Told(QueueSpec(name="a", max_applications=1))
    told(node(), app("one"), ask("k1", of="one"))
    records = told(app("two"), ask("k2", of="two"), ask("k3", of="two"))
    assert [(r.object, r.detail) for r in records if r.detail in (213, 214)] == [("two", 213)]
    records = told(Release("one", "k1", Cause.FINISHED))
    assert [(r.object, r.detail) for r in records if r.detail in (213, 214)] == [("two", 214)]


def test_limits_of_users_and_groups() -> None:
    """An application is linked with its group; a full limit is told by request, a number of applications by 215."""
    limits = (
        LimitSpec(users=("ada",), max_resources=Limits({"vcore": 3}), max_applications=1),
        LimitSpec(groups=("crew",), max_resources=Limits({"vcore": 30})),
    )
    told = Told(QueueSpec(name="a", limits=limits))
    records = told(node(), app(groups=("crew",)), ask("k1", 2))
    assert (USERGROUP, SET, 602, "crew", "app", None) in short(records)
    assert (USERGROUP, ADD, 604, "crew", "root.a", 2) in short(records)
    assert told(ask("k2", 2))[-1].message == (
        "Request 'k2' exceeds the available user quota (requested map[vcore:2], available map[vcore:1])"
    )
    assert [r.detail for r in told(app("more", groups=("crew",)), ask("k3", 1, of="more"))][-1] == 215
    records = told(Release("app", "k1", Cause.FINISHED))
    assert "Request 'k2' fits in the available user quota" in [r.message for r in records]
    assert (USERGROUP, REMOVE, 604, "crew", "root.a", 2) in short(records)


def test_a_configuration_tells_what_is_different() -> None:
    """Queues that come, limits that change or go; the same one again tells nothing."""
    was = QueueSpec(name="a", max=Limits({"vcore": 3}), limits=(LimitSpec(users=("ada",), max_applications=1),))
    told = Told(was)
    new = config(
        QueueSpec(name="a", guaranteed=Limits({"vcore": 1})),
        QueueSpec(name="b", limits=(LimitSpec(groups=("crew",), max_resources=Limits({"vcore": 7})),)),
    )
    assert short(told(Configure(new))) == [
        (QUEUE, ADD, 0, "root.b", "", None),
        (QUEUE, SET, 403, "root.a", "", None),
        (QUEUE, SET, 404, "root.a", "", 1),
        (USERGROUP, SET, 601, "crew", "root.b", 7),
        (USERGROUP, REMOVE, 600, "ada", "root.a", None),
    ]
    assert told(Configure(new)) == []


def test_a_queue_that_placement_makes_is_told_as_dynamic() -> None:
    """When it comes and when it goes."""
    told = Told(placement_rules=(RuleSpec(name="user", create=True),))
    assert (QUEUE, ADD, 401, "root.ada", "", None) in short(told(app(queue="")))
    told(RemoveApplication("app"))
    assert short(told.wait(10_000)) == [(QUEUE, REMOVE, 401, "root.ada", "", None)]


def test_a_moved_application_takes_its_use_along() -> None:
    """Out of the old queue, into the new one."""
    told = Told(QueueSpec(name="a"), QueueSpec(name="b"))
    told(node(), app(), ask())
    assert short(told(MoveApplication("app", "root.b"))) == [
        (USERGROUP, REMOVE, 603, "ada", "root.a", 2),
        (QUEUE, REMOVE, 405, "root.a", "app", None),
        (QUEUE, ADD, 405, "root.b", "app", None),
        (USERGROUP, ADD, 603, "ada", "root.b", 2),
    ]


def test_a_victim_is_told_for_whom_it_goes() -> None:
    """A request event of the victim; when it has gone the detail says that it was preempted."""
    told = Told(QueueSpec(name="a"), QueueSpec(name="b"), preemption=PreemptionSpec(rule="priority"))
    told(node(), app("low"), ask("v", 10, of="low"))
    records = told(app("high", "root.b"), ask("p", 10, of="high", priority=9))
    assert [r.message for r in records if r.type == REQUEST] == ["Preempted by p from application high in root.b"]
    assert (NODE, ADD, 306, "n1", "p", 10) in short(records)
    records = told(Release("low", "v", Cause.PREEMPTED_BY_SCHEDULER))
    assert (APP, REMOVE, 501, "low", "v", 10) in short(records)
    assert (NODE, REMOVE, 306, "n1", "p", 10) in short(records)


def test_a_placeholder_is_replaced() -> None:
    """It goes as replaced, the real ask is allocated."""
    told = Told(QueueSpec(name="a", properties={"application.sort.policy": "fifo"}))
    told(node(), app(), ask("ph", placeholder=True, task_group="tg"))
    told(ask("real", task_group="tg"))
    records = told(Release("app", "ph", Cause.PLACEHOLDER_REPLACED))
    assert [r.detail for r in records][:6] == [503, 303, 603, 200, 303, 603]
    assert set(told.writer.apps["default", "app"].asks) == {"real"}


def test_quota_preemption_tells_its_result() -> None:
    """On the queue, with its maximum; the victims are told too."""
    delay = {"quota.preemption.delay": "1s"}
    told = Told(QueueSpec(name="a", properties=delay), preemption=PreemptionSpec(quota_enabled=True))
    told(node(), app(), ask("k1", 4), ask("k2", 4))
    lower = config(
        QueueSpec(name="a", max=Limits({"vcore": 5}), properties=delay), preemption=PreemptionSpec(quota_enabled=True)
    )
    told(Configure(lower))
    records = told.wait(1_000) + told.wait(1_000)
    result = next(r for r in records if r.detail == 407)
    assert (result.object, result.amount) == ("root.a", (("vcore", 5),))
    assert "map[vcore:3]" in result.message


def test_a_scribe_that_begins_later_knows_what_is_there() -> None:
    """After a restart ends are told with their sizes."""
    told = Told()
    told(node(), app(), ask())
    told.writer = HistoryWriter(told.scheduler)
    assert short(told(Release("app", "k", Cause.FINISHED)))[0] == (APP, REMOVE, 500, "app", "k", 2)


def test_json_leaves_out_what_is_zero_but_not_the_amount() -> None:
    """A zero quantity is an empty object."""
    assert as_json(Record(5, 2, 0, 0, "app")) == {
        "type": 2,
        "objectID": "app",
        "timestampNano": 5_000_000,
        "resource": {},
    }
    shown = as_json(Record(5, 3, 2, 303, "n1", "k", "text", (("gpu", 0), ("vcore", 7))))
    assert shown["resource"] == {"resources": {"gpu": {}, "vcore": {"value": 7}}}
    assert (shown["eventChangeType"], shown["eventChangeDetail"], shown["referenceID"]) == (2, 303, "k")


def test_long_messages_are_cut() -> None:
    """At 1,024 characters, the last three are dots."""
    assert cut("x" * 1024) == "x" * 1024
    assert cut("x" * 1025) == "x" * 1021 + "..."


def test_applications_of_two_partitions_with_one_name_do_not_mix() -> None:
    """Each has its own queue, asks and end."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"), QueueSpec(name="b")))
    scheduler = Scheduler(ClusterSpec(partitions=tuple(PartitionSpec(name=n, root=root) for n in ("default", "gpu"))))
    told = Told()
    told.scheduler, told.writer = scheduler, HistoryWriter(scheduler)
    size = Resources({"vcore": 1})
    for name, queue in (("default", "root.a"), ("gpu", "root.b")):
        told(
            AddNode(NodeSpec(id=f"n-{name}", capacity=Resources({"vcore": 4}), partition=name)),
            AddApplication(ApplicationSpec(id="app", queue=queue, user="ada", partition=name)),
            AddAsks((AskSpec(application="app", key="k", resources=size),), name),
        )
    notes = told.writer.apps
    assert {k: (n.queue, n.asks["k"].node) for k, n in notes.items()} == {
        ("default", "app"): ("root.a", "n-default"),
        ("gpu", "app"): ("root.b", "n-gpu"),
    }
    told(RemoveApplication("app", "gpu"))
    assert list(notes) == [("default", "app")]
    assert notes["default", "app"].asks["k"].node == "n-default"


def test_a_further_attempt_is_a_request_like_any_other() -> None:
    """Nobody reports it, and yet it is told when it is decided, when it is placed and when it ends."""
    for cause in (Cause.INTERRUPTED, Cause.PREEMPTED_BY_SCHEDULER):
        told = Told()
        work = AskSpec(application="app", key="k", resources=Resources({"vcore": 2}), retry=RetrySpec(limit=1))
        told(node(), app(), AddAsks((work,)))
        ended = told(Release("app", "k", cause))
        placed = [r for r in ended if r.object == "app" and r.reference == "k#2"]
        assert [r.change for r in placed] == [ADD, ADD]
        gone = told(Release("app", "k#2", Cause.FINISHED))
        assert [r.change for r in gone if r.type == APP and r.reference == "k#2"] == [REMOVE]
