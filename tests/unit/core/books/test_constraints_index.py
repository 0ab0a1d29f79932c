"""Constraints in the whole scheduler: who is placed where, who waits why, and who is looked at again when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from invariants.books import check_books

from fairlead.core.model.constraints import (
    HOSTNAME,
    AffinityTerm,
    Constraints,
    Requirement,
    SpreadTerm,
    Taint,
    Toleration,
)
from fairlead.core.model.decisions import Allocated, AskRejected, Decision, Evict, NodeRejected
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    DrainNode,
    Event,
    LabelNode,
    Release,
    RemoveNode,
    UndrainNode,
)
from fairlead.core.model.reasons import NoNodeHasRoom, NoNodeSuits
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler

WEB = (Requirement("app", "In", ("web",)),)
IS_WEB = {"app": "web"}
DB = (Requirement("app", "In", ("db",)),)
NOT_BESIDE_WEB = Constraints(anti_affinity=(AffinityTerm(WEB),))
NOT_IN_A_ZONE_WITH_WEB = Constraints(anti_affinity=(AffinityTerm(WEB, "zone"),))
NOT_IN_A_ZONE_WITH_DB = Constraints(anti_affinity=(AffinityTerm(DB, "zone"),))
WITH_WEB = Constraints(affinity=(AffinityTerm(WEB, "zone"),))


def selected(**wanted: str) -> Constraints:
    """Nodes with these attributes."""
    return Constraints(selector=tuple(Requirement(key, "In", (value,)) for key, value in wanted.items()))


@dataclass
class World:
    """A scheduler with one application per queue, driven by short calls."""

    rule: str = "guarantee"
    now_ms: int = 0
    scheduler: Scheduler = field(init=False)

    def __post_init__(self) -> None:
        leaves = (QueueSpec(name="a"), QueueSpec(name="b", guaranteed=Limits({"vcore": 4})))
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
        self.scheduler = Scheduler(
            ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule=self.rule)),))
        )
        for name in "ab":
            self.tell(AddApplication(ApplicationSpec(id=name, queue=f"root.{name}")))

    def tell(self, event: Event) -> list[Decision]:
        self.now_ms += 1
        decided = self.scheduler.handle(event, self.now_ms)
        check_books(self.scheduler)
        return decided

    def node(self, name: str, vcore: int = 4, taints: tuple[Taint, ...] = (), **attributes: str) -> None:
        capacity = Resources({"vcore": vcore})
        self.tell(AddNode(NodeSpec(id=name, capacity=capacity, attributes=attributes, taints=taints)))

    def ask(
        self,
        key: str,
        where: Constraints | None = None,
        of: str = "a",
        vcore: int = 1,
        node: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> list[Decision]:
        spec = AskSpec(
            application=of,
            key=key,
            resources=Resources({"vcore": vcore}),
            where=where or Constraints(),
            labels=labels or {},
            node=node,
        )
        return self.tell(AddAsks((spec,)))

    def run(self) -> dict[str, str]:
        """What is placed now, by key."""
        decided = self.scheduler.schedule(self.now_ms)
        check_books(self.scheduler)
        return {d.key: d.node for d in decided if isinstance(d, Allocated)}

    def kept_off(self, key: str, app: str = "a") -> Mapping[str, int]:
        """How many nodes each filter excludes for a waiting ask that suits none."""
        reason = self.scheduler.why(app, key)
        assert isinstance(reason, NoNodeSuits), reason
        return reason.excluded


@pytest.fixture
def world() -> World:
    """Nodes are added by the tests."""
    return World()


# -- one filter each ----------------------------------------------------------------------------------------------


def test_a_selector_names_the_nodes(world: World) -> None:
    """The id of a node is an attribute of every node."""
    world.node("n1", disk="ssd")
    world.node("n2", disk="hdd")
    world.ask("fast", selected(disk="ssd"))
    world.ask("there", selected(**{HOSTNAME: "n2"}))
    world.ask("nowhere", selected(disk="tape"))
    assert world.run() == {"fast": "n1", "there": "n2"}
    assert world.kept_off("nowhere") == {"selector": 2}


def test_a_taint_keeps_away_who_does_not_tolerate_it(world: World) -> None:
    """Plain asks too."""
    world.node("n1", taints=(Taint("gpu"),))
    world.ask("plain")
    world.ask("tolerant", Constraints(tolerations=(Toleration("gpu", "Exists"),)))
    assert world.run() == {"tolerant": "n1"}
    assert world.kept_off("plain") == {"taint": 1}


def test_two_works_on_one_port_need_two_nodes(world: World) -> None:
    """Unless their addresses differ."""
    world.node("n1")
    for key, port in (("all", "TCP/0.0.0.0/80"), ("one", "TCP/10.0.0.1/80"), ("udp", "UDP/10.0.0.1/80")):
        world.ask(key, Constraints(ports=(port,)))
    assert world.run() == {"all": "n1", "udp": "n1"}
    assert world.kept_off("one") == {"ports": 1}
    world.tell(Release("a", "all"))
    world.ask("two", Constraints(ports=("TCP/10.0.0.2/80",)))
    assert world.run() == {"one": "n1", "two": "n1"}


def test_affinity_waits_for_the_work_it_wants_to_be_with(world: World) -> None:
    """It goes into the zone of that work once it runs, whatever the order of nodes says."""
    world.node("n1", zone="x", vcore=9)
    world.node("n2", zone="y")
    world.ask("friend", WITH_WEB)
    assert world.run() == {}
    assert world.kept_off("friend") == {"affinity": 2}
    world.ask("web", selected(zone="y"), of="b", labels=IS_WEB)
    assert world.run() == {"web": "n2", "friend": "n2"}


def test_the_first_of_a_group_with_affinity_to_itself_may_start(world: World) -> None:
    """Anywhere with the topology key; the others follow it."""
    world.node("n0", vcore=9)
    world.node("n1", zone="x", vcore=2)
    world.node("n2", zone="y", vcore=1)
    for key in ("w1", "w2", "w3"):
        world.ask(key, WITH_WEB, labels=IS_WEB)
    assert world.run() == {"w1": "n1", "w2": "n1"}
    reason = world.scheduler.why("a", "w3")
    assert isinstance(reason, NoNodeHasRoom)
    assert reason.excluded == {"affinity": 2}


def test_anti_affinity_holds_in_both_directions(world: World) -> None:
    """The newcomer keeps off the work it names, and running work keeps off the newcomers that it names."""
    world.node("n1", zone="x")
    world.node("n2", zone="x")
    world.ask("web", labels=IS_WEB, node="n1")
    world.ask("hates", NOT_IN_A_ZONE_WITH_WEB)
    assert world.run() == {}
    assert world.kept_off("hates") == {"anti-affinity": 2}
    world.tell(Release("a", "web"))
    assert world.run() == {"hates": "n1"}
    world.ask("web2", labels=IS_WEB)
    world.ask("other", labels={"app": "db"})
    assert world.run() == {"other": "n2"}
    assert world.kept_off("web2") == {"repelled": 2}


def test_work_that_keeps_off_the_unlabelled_keeps_off_plain_asks(world: World) -> None:
    """A selector such as `DoesNotExist` matches work without labels."""
    world.node("n1")
    alone = Constraints(anti_affinity=(AffinityTerm((Requirement("friend", "DoesNotExist"),)),))
    world.ask("hermit", alone, labels={"friend": "none"})
    assert world.run() == {"hermit": "n1"}
    world.ask("plain")
    assert world.run() == {}
    assert world.kept_off("plain") == {"repelled": 1}
    world.tell(Release("a", "hermit"))
    assert world.run() == {"plain": "n1"}


def test_spread_keeps_domains_level(world: World) -> None:
    """At most one more in a zone than in the emptiest; nodes without the key take none."""
    world.node("n0", vcore=99)
    world.node("n1", zone="x", vcore=99)
    world.node("n2", zone="y", vcore=2)
    even = Constraints(spread=(SpreadTerm(WEB, "zone"),))
    for number in range(6):
        world.ask(f"w{number}", even, labels=IS_WEB)
    placed = list(world.run().values())
    assert (placed.count("n1"), placed.count("n2")) == (3, 2)
    reason = world.scheduler.why("a", "w5")
    assert isinstance(reason, NoNodeHasRoom)
    assert reason.excluded == {"spread": 2}


def test_spread_counts_only_nodes_that_the_selector_names(world: World) -> None:
    """A zone without such a node is not the emptiest."""
    world.node("n1", zone="x", disk="ssd")
    world.node("n2", zone="y", disk="hdd")
    where = Constraints(selector=selected(disk="ssd").selector, spread=(SpreadTerm(WEB, "zone"),))
    for number in range(3):
        world.ask(f"w{number}", where, labels=IS_WEB)
    assert len(world.run()) == 3


def test_too_few_domains_count_as_an_empty_one(world: World) -> None:
    """`min_domains` that are not there hold back the rest."""
    world.node("n1", zone="x")
    where = Constraints(spread=(SpreadTerm(WEB, "zone", 1, 2),))
    world.ask("w1", where, labels=IS_WEB)
    world.ask("w2", where, labels=IS_WEB)
    assert world.run() == {"w1": "n1"}
    world.node("n2", zone="y")
    assert world.run() == {"w2": "n2"}


# -- who is looked at again ---------------------------------------------------------------------------------------


def test_a_label_that_begins_to_count_tells_waiting_asks_apart(world: World) -> None:
    """Equal but for their labels they wait together, until somebody looks at the label."""
    world.node("n1", vcore=1)
    world.ask("first", vcore=1)
    world.run()
    world.ask("web", labels=IS_WEB)
    world.ask("db", labels={"app": "db"})
    assert world.run() == {}
    world.node("n2")
    world.ask("hermit", NOT_BESIDE_WEB, node="n2", of="b")
    assert world.run() == {"db": "n2"}
    world.tell(Release("a", "first"))
    assert world.run() == {"web": "n1"}


def test_the_end_of_work_on_a_closed_node_frees_the_rest_of_its_zone(world: World) -> None:
    """For who must not be in a zone with it, and for whom it would not let in."""
    world.node("n1", zone="x")
    world.node("n2", zone="x")
    world.ask("web", NOT_IN_A_ZONE_WITH_DB, labels=IS_WEB, node="n1")
    world.tell(DrainNode("n1"))
    world.ask("hates", NOT_IN_A_ZONE_WITH_WEB)
    world.ask("hated", labels={"app": "db"})
    assert world.run() == {}
    world.tell(Release("a", "web"))
    assert world.run() == {"hates": "n2", "hated": "n2"}


def test_work_that_starts_elsewhere_evens_out_the_spread(world: World) -> None:
    """The start in one zone lets the next start in the other."""
    world.node("n1", zone="x")
    world.node("n2", zone="y")
    world.tell(DrainNode("n2"))
    even = Constraints(spread=(SpreadTerm(WEB, "zone"),))
    for number in range(3):
        world.ask(f"w{number}", even, labels=IS_WEB)
    assert world.run() == {"w0": "n1"}
    world.ask("web", labels=IS_WEB, node="n2", of="b")
    assert world.run() == {"w1": "n1"}


def test_a_zone_that_goes_no_longer_holds_back_the_others(world: World) -> None:
    """The emptiest domain leaves with its last node."""
    world.node("n1", zone="x")
    world.node("n2", zone="y")
    world.tell(DrainNode("n2"))
    even = Constraints(spread=(SpreadTerm(WEB, "zone"),))
    world.ask("w0", even, labels=IS_WEB)
    world.ask("w1", even, labels=IS_WEB)
    assert world.run() == {"w0": "n1"}
    world.tell(RemoveNode("n2"))
    assert world.run() == {"w1": "n1"}


def test_a_node_that_gets_the_label_or_loses_the_taint_is_looked_at(world: World) -> None:
    """By everybody who waits."""
    world.node("n1", taints=(Taint("t"),))
    world.ask("plain")
    world.ask("ssd", selected(disk="ssd"))
    assert world.run() == {}
    world.tell(LabelNode("n1", {}, ()))
    assert world.run() == {"plain": "n1"}
    world.tell(LabelNode("n1", {"disk": "ssd"}, ()))
    assert world.run() == {"ssd": "n1"}


# -- nodes that change --------------------------------------------------------------------------------------------


def test_a_no_execute_taint_evicts_what_does_not_tolerate_it(world: World) -> None:
    """Once; other running work stays, whatever else changed."""
    world.node("n1", disk="ssd")
    world.ask("ssd", selected(disk="ssd"))
    world.ask("tolerant", Constraints(tolerations=(Toleration("broken", "Exists"),)))
    world.run()
    decided = world.tell(LabelNode("n1", {}, (Taint("broken", "", "NoExecute"),)))
    assert [(d.key, d.rule, d.cause) for d in decided if isinstance(d, Evict)] == [
        ("ssd", "taint", Cause.PREEMPTED_BY_SCHEDULER)
    ]
    assert world.tell(LabelNode("n1", {"more": "1"}, (Taint("broken", "", "NoExecute"),))) == []


def test_a_label_for_an_unknown_node_or_a_bad_taint_is_refused(world: World) -> None:
    """And nothing changes."""
    world.node("n1", disk="ssd")
    for event in (LabelNode("n9"), LabelNode("n1", {}, (Taint("t", "", "Never"),))):
        assert [type(d) for d in world.tell(event)] == [NodeRejected]
    assert world.scheduler.cluster.partitions["default"].nodes.nodes["n1"].spec.attributes == {"disk": "ssd"}


def test_an_ask_whose_constraints_make_no_sense_is_refused(world: World) -> None:
    """With the place in them."""
    (refused,) = world.ask("bad", Constraints(ports=("80",)))
    assert isinstance(refused, AskRejected)
    assert "ports: '80' is not protocol/ip/port" in refused.reason.sentence()


def test_work_that_runs_already_is_taken_in_whatever_it_says(world: World) -> None:
    """Constraints are for newcomers."""
    world.node("n1", taints=(Taint("t"),))
    world.ask("there", selected(disk="ssd"), node="n1")
    assert world.scheduler.why("a", "there") is None


def test_relabelling_moves_running_work_into_another_zone(world: World) -> None:
    """What runs there counts for the new zone from then on."""
    world.node("n1", zone="x")
    world.node("n2", zone="y")
    world.ask("web", labels=IS_WEB, node="n1")
    world.ask("hates", NOT_IN_A_ZONE_WITH_WEB)
    world.tell(DrainNode("n2"))
    assert world.run() == {}
    world.tell(LabelNode("n1", {"zone": "y"}, ()))
    world.tell(UndrainNode("n2"))
    assert world.run() == {}
    world.tell(LabelNode("n2", {"zone": "x"}, ()))
    assert world.run() == {"hates": "n2"}


# -- the other steps ----------------------------------------------------------------------------------------------


def test_preemption_by_guarantee_looks_for_victims_on_nodes_that_suit(world: World) -> None:
    """The other node would have cheaper victims."""
    world.node("n1", disk="ssd")
    world.node("n2", disk="hdd")
    world.ask("on-ssd", vcore=4, node="n1")
    world.ask("on-hdd", vcore=4, node="n2")
    world.ask("wants", selected(disk="ssd"), vcore=4, of="b")
    world.run()
    world.now_ms += 60_000
    evicted = [d.key for d in world.scheduler.schedule(world.now_ms) if isinstance(d, Evict)]
    assert evicted == ["on-ssd"]


def test_a_node_is_set_aside_only_where_the_ask_may_run(world: World) -> None:
    """The other one would be fuller, and so be preferred."""
    world.node("n1", disk="ssd", vcore=8)
    world.node("n2", disk="hdd", vcore=4)
    world.ask("r1", vcore=7, node="n1")
    world.ask("r2", vcore=1, node="n2")
    world.ask("big", selected(disk="ssd"), vcore=4)
    world.run()
    world.now_ms += 3_000
    world.run()
    nodes = world.scheduler.cluster.partitions["default"].nodes.nodes
    assert [n.id for n in nodes.values() if n.reservations] == ["n1"]


def test_a_required_node_must_suit_too(world: World) -> None:
    """A taint keeps away even who may run nowhere else; nobody is stopped for it."""
    world.node("n1", taints=(Taint("t"),))
    world.node("n2", vcore=8)
    world.ask("low", vcore=4, node="n1")
    for key, where in (("no", Constraints()), ("yes", Constraints(tolerations=(Toleration("t", "Exists"),)))):
        spec = AskSpec(
            application="b", key=key, resources=Resources({"vcore": 4}), where=where, tags={TAG_REQUIRED_NODE: "n1"}
        )
        world.tell(AddAsks((spec,)))
        decided = [d for _ in range(3) for d in world.scheduler.schedule(world.now_ms)]
        assert [d.on_behalf_of for d in decided if isinstance(d, Evict)] == (["b/yes"] if key == "yes" else [])
    world.tell(Release("a", "low", Cause.PREEMPTED_BY_SCHEDULER))
    assert world.run() == {"yes": "n1"}


def test_a_gang_member_takes_its_placeholders_place_only_where_it_may_run(world: World) -> None:
    """Its placeholder ran where it may not: it goes to the other node."""
    world.node("n1", disk="hdd")
    world.node("n2", disk="ssd")
    for key, holds, where, node in (("tg", True, None, "n1"), ("real", False, selected(disk="ssd"), "")):
        spec = AskSpec(
            application="b",
            key=key,
            resources=Resources({"vcore": 1}),
            where=where or Constraints(),
            node=node,
            task_group="g",
            placeholder=holds,
        )
        world.tell(AddAsks((spec,)))
    world.scheduler.schedule(world.now_ms)
    decided = world.tell(Release("b", "tg", Cause.PLACEHOLDER_REPLACED))
    assert [(d.key, d.node) for d in decided if isinstance(d, Allocated)] == [("real", "n2")]


def test_whether_a_node_would_do_without_its_victims() -> None:
    """Their ports and their anti-affinity go with them, and so does what the ask wants to be with."""
    world = World(rule="priority")
    world.node("n1", zone="x")
    world.ask("web", Constraints(ports=("TCP//80",), anti_affinity=(AffinityTerm(WEB),)), labels=IS_WEB, node="n1")
    nodes = world.scheduler.cluster.partitions["default"].nodes
    web = world.scheduler.cluster.partitions["default"].applications["a"].asks["web"]
    node = nodes.nodes["n1"]
    for key, where, before, after in (
        ("port", Constraints(ports=("TCP//80",)), False, True),
        ("hates", NOT_BESIDE_WEB, False, True),
        ("friend", WITH_WEB, True, False),
    ):
        world.ask(key, where, vcore=4)
        ask = world.scheduler.cluster.partitions["default"].applications["a"].asks[key]
        assert (nodes.suits(ask, node), nodes.suits(ask, node, (web,))) == (before, after), key
    world.ask("web2", labels=IS_WEB, vcore=4)
    ask = world.scheduler.cluster.partitions["default"].applications["a"].asks["web2"]
    assert (nodes.suits(ask, node), nodes.suits(ask, node, (web,))) == (False, True)


def test_many_nodes_are_searched_in_order(world: World) -> None:
    """The emptiest that is named, of more nodes than are tried one by one."""
    for number in range(40):
        world.node(f"n{number:02}", vcore=40 - number, disk="ssd" if number % 10 == 7 else "hdd")
        world.ask(f"r{number}", node=f"n{number:02}", of="b")
    world.ask("fast", selected(disk="ssd"))
    assert world.run() == {"fast": "n07"}


def test_the_state_keeps_what_was_said(world: World) -> None:
    """Labels that count, taints and constraints come back; both go on alike."""
    world.node("n1", zone="x", taints=(Taint("t"),))
    world.node("n2", zone="y")
    world.ask("hermit", NOT_IN_A_ZONE_WITH_WEB, node="n2")
    world.ask("web", labels=IS_WEB)
    world.run()
    other = Scheduler.load(world.scheduler.dump())
    assert other.dump() == world.scheduler.dump()
    event = LabelNode("n1", {"zone": "x"}, ())
    assert other.handle(event, 50) == world.scheduler.handle(event, 50)
    assert other.schedule(51) == world.scheduler.schedule(51) != []
    check_books(other)


def test_what_is_counted_for_the_first_time_while_something_is_tried_is_right_afterwards() -> None:
    """What was tried was taken off again, and had not been counted: work was placed beside what it keeps apart from."""
    w = World()
    w.node("n1")
    w.ask("here", labels={"app": "x"})
    assert w.run() == {"here": "n1"}
    table = w.scheduler.cluster.partitions["default"].nodes
    node, tried = table.nodes["n1"], AskSpec(application="a", key="t", resources=Resources({}), labels={"app": "x"})
    selector = (Requirement("app", "In", ("x",)),)
    table.terrain.suppose(tried, node)
    assert table.terrain.standing_of(selector).on_node == {node: 2}
    table.terrain.suppose_no_more()
    assert table.terrain.standing_of(selector).on_node == {node: 1}
    check_books(w.scheduler)
