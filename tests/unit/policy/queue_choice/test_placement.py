from __future__ import annotations

import json

import pytest

from fairlead.config import load_text
from fairlead.core.model.decisions import ApplicationAccepted, ApplicationRejected, QueueChanged
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Configure, RemoveApplication
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.scheduler import Scheduler

FORCE = {"application.create.force": "true"}
LEAF, PARENT = {"name": "leaf"}, {"name": "par", "parent": True}


def scheduler(rules: object = None, queues: object = (LEAF, PARENT), **root: object) -> Scheduler:
    part = {"queues": [{"name": "root", "submitacl": "*", "queues": list(queues), **root}]}  # type: ignore[call-overload]
    if rules is not None:
        part["placementrules"] = rules
    return Scheduler(load_text(json.dumps({"partitions": [part]}), keep_broken_rules=True))


def place(s: Scheduler, queue: str = "", *, id: str = "app", **spec: object) -> str:  # noqa: A002
    """The queue the application got, or `! ` and why not."""
    spec = {"user": "alice"} | spec
    for d in s.handle(AddApplication(ApplicationSpec(id=id, queue=queue, **spec)), s.cluster.now_ms):  # type: ignore[arg-type]
        if isinstance(d, ApplicationAccepted):
            s.check()
            return d.queue
        if isinstance(d, ApplicationRejected):
            s.check()
            return "! " + d.reason.sentence()
    raise AssertionError("no answer")


NO_RULE = "! failed to place application app: application rejected: no placement rule matched"
BAD_NAME = "! failed to place application app: invalid queue name"


@pytest.mark.parametrize(
    ("create", "queue", "expected"),
    [
        (False, "root.leaf", "root.leaf"),
        (False, "leaf", "root.leaf"),
        (False, "root.LEAF", "root.leaf"),
        (False, "", NO_RULE),
        (False, "root.nope", NO_RULE),
        (False, "root.par", NO_RULE),
        (True, "root.new", "root.new"),
        (True, "root.par.a.B", "root.par.a.b"),
        (True, "a.b", "root.a_dot_b"),
        (True, "ROOT.leaf", "root.root_dot_leaf"),
        (True, "root", "root.root"),
        (True, "root..x", BAD_NAME),
        (True, "root.", BAD_NAME),
        (True, "sp ace", BAD_NAME),
        (True, "x" * 65, BAD_NAME),
        (True, "root.@recovery@", NO_RULE),
        (True, "@recovery@", NO_RULE),
        (True, "root.@Recovery@.x", "! failed to create rule based queue root.@Recovery@.x for application app"),
        (True, "root.leaf.x", "! failed to create rule based queue root.leaf.x for application app\ncreation of queue"),
        (True, "root." + ".".join(["q"] * 64), "! failed to create rule based queue"),
    ],
)
def test_provided(create: bool, queue: str, expected: str) -> None:
    """The queue asked for, as a whole path or one name below the root."""
    got = place(scheduler([{"name": "provided", "create": create}]), queue)
    assert got == expected or (expected.startswith("!") and got.startswith(expected))


def test_without_rules_an_existing_queue_is_taken() -> None:
    """And none is made."""
    assert place(scheduler(), "root.leaf") == "root.leaf"
    assert place(scheduler(), "root.new") == NO_RULE


def test_user() -> None:
    """Dots in the name are no levels; a name that can be no queue is refused."""
    rules = [{"name": "user", "create": True}]
    assert place(scheduler(rules), user="a.b.c") == "root.a_dot_b_dot_c"
    assert place(scheduler(rules), user="svc$").startswith(BAD_NAME)


def test_fixed() -> None:
    """Dots in its value are levels; `rootbeer` does not begin at the root."""
    assert place(scheduler([{"name": "fixed", "value": "par.X.y", "create": True}])) == "root.par.x.y"
    assert place(scheduler([{"name": "fixed", "value": "rootbeer", "create": True}])) == "root.rootbeer"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"NameSpace": "a.b"}, "root.a_dot_b"),
        ({"namespace": "root.par.k"}, "root.par.k"),
        ({"namespace": ""}, NO_RULE),
        ({}, NO_RULE),
        ({"namespace": "b d"}, BAD_NAME),
    ],
)
def test_tag(tags: dict[str, str], expected: str) -> None:
    """The tag's name may be written in any case."""
    assert place(scheduler([{"name": "tag", "value": "Namespace", "create": True}]), tags=tags).startswith(expected)


def test_a_parent_rule_makes_the_path_above() -> None:
    """Its own `create` decides whether that path may be missing."""
    parent = {"name": "tag", "value": "team", "create": True}
    rules = [{"name": "user", "create": True, "parent": parent}, {"name": "fixed", "value": "leaf"}]
    assert place(scheduler(rules), tags={"team": "red"}) == "root.red.alice"
    assert place(scheduler(rules)) == "root.leaf"
    parent["create"] = False
    assert place(scheduler(rules), tags={"team": "red"}) == "root.leaf"
    assert place(scheduler(rules), tags={"team": "par"}) == "root.par.alice"


def test_a_parent_that_is_a_leaf_rejects() -> None:
    """No later rule is asked."""
    rules = [{"name": "user", "create": True, "parent": {"name": "tag", "value": "team"}}, {"name": "provided"}]
    got = place(scheduler(rules), "root.leaf", tags={"team": "leaf"})
    assert got == "! failed to place application app: parent rule returned a leaf queue: root.leaf"


def test_a_fixed_root_as_parent_is_the_root() -> None:
    """Not a queue named root below it."""
    parent = {"name": "fixed", "value": "root", "create": True}
    assert place(scheduler([{"name": "user", "create": True, "parent": parent}])) == "root.alice"


def test_rules_are_tried_in_order_and_each_starts_afresh() -> None:
    """What one rule may not use is no obstacle for the next."""
    rules = [{"name": "provided", "create": True}, {"name": "fixed", "value": "leaf"}]
    queues = [{"name": "leaf", "submitacl": "alice"}, {"name": "shut"}]
    s = scheduler(rules, queues, submitacl="")
    assert place(s, "root.shut") == "root.leaf"
    assert place(s, "root.made", id="other") == "root.leaf"
    assert place(s, "root.made", id="third", user="bob").endswith("no placement rule matched")


def test_the_filter_comes_before_the_name() -> None:
    """A name that is none does not matter to a rule for others."""
    rules = [{"name": "provided", "filter": {"type": "deny"}}, {"name": "fixed", "value": "leaf"}]
    assert place(scheduler(rules), "sp ace") == "root.leaf"


def test_root_default_is_the_last_resort() -> None:
    """If the user may submit there."""
    queues = [LEAF, {"name": "default", "submitacl": "alice"}]
    assert place(scheduler(None, queues, submitacl=""), "root.nope") == "root.default"
    assert place(scheduler(None, queues, submitacl=""), "root.nope", user="bob") == NO_RULE
    assert place(scheduler(None, [{"name": "default", "parent": True}]), "root.nope") == NO_RULE


@pytest.mark.parametrize(
    ("value", "forced"), [("true", True), ("T", True), ("1", True), ("yes", False), ("TRuE", False)]
)
def test_forced_applications_go_to_the_recovery_queue(value: str, forced: bool) -> None:
    """When no rule takes them; access lists do not matter."""
    s = scheduler(None, [LEAF, {"name": "default", "submitacl": "*"}], submitacl="")
    got = place(s, "root.nope", tags={"Application.Create.Force": value})
    assert got == ("root.@recovery@" if forced else "root.default")
    assert (s.cluster.partitions["default"].root.find("root.@recovery@") is not None) is forced


def test_the_recovery_queue_takes_nobody_else() -> None:
    """Not even when it exists."""
    s = scheduler()
    assert place(s, "x", tags=FORCE) == "root.@recovery@"
    assert place(s, "root.@recovery@", id="app2").endswith("no placement rule matched")
    assert place(s, "root.@recovery@", id="app3", tags=FORCE) == "root.@recovery@"


def test_a_recovery_queue_of_the_file_that_is_a_parent_takes_nobody() -> None:
    """Applications are in leaves, forced or not."""
    s = scheduler(None, [{"name": "@recovery@", "parent": True}])
    assert place(s, "x", tags=FORCE) == "! failed to find queue root.@recovery@ for application app"


def test_without_a_user_only_forced_ones_are_taken() -> None:
    """They run as nobody."""
    s = scheduler()
    assert place(s, "root.leaf", user="") == "! empty user cannot resolve"
    assert place(s, "x", user="", tags=FORCE) == "root.@recovery@"
    assert s.cluster.partitions["default"].applications["app"].user == "nobody"


def test_a_user_name_is_checked_when_groups_are_given() -> None:
    """As YuniKorn does."""
    assert place(scheduler(), "root.leaf", user="1x", groups=("g",)).startswith("! invalid username")
    assert place(scheduler(), "root.leaf", user="1x") == "root.leaf"


def test_rules_that_cannot_be_built_reject_everything() -> None:
    """A partition may start with them."""
    s = scheduler([{"name": "nonsense"}])
    assert place(s, "root.leaf") == NO_RULE
    assert place(s, "root.leaf", tags=FORCE) == NO_RULE


def test_what_is_rejected_is_kept_with_the_reason() -> None:
    """And may come again."""
    s = scheduler()
    assert place(s, "root.nope") == NO_RULE
    part = s.cluster.partitions["default"]
    assert part.rejected["app"].rejected is not None
    assert place(s, "root.leaf") == "root.leaf"
    assert place(s, "root.leaf").endswith("but application already existed")


GANG = Resources({"vcore": 3000})


def test_a_gang_needs_a_queue_in_order_of_arrival() -> None:
    """A fair one could starve half of it."""
    s = scheduler(None, [{"name": "leaf", "properties": {"application.sort.policy": "fair"}}])
    assert place(s, "root.leaf", placeholder_ask=GANG).endswith("unsupported sort type")
    assert place(s, "root.leaf") == "root.leaf"


def test_a_gang_must_fit_every_maximum_on_the_way() -> None:
    """The nodes do not count, they may come."""
    small = {"resources": {"max": {"vcore": 2}}}
    s = scheduler(None, [{"name": "team", "queues": [{"name": "leaf"}], **small}])
    got = place(s, "root.team.leaf", placeholder_ask=GANG)
    assert got == (
        "! queue root.team.leaf cannot fit application app: task group request {'vcore': 3000} larger than max queue "
        "allocation {'vcore': 2000}"
    )
    assert place(s, "root.team.leaf", placeholder_ask=Resources({"vcore": 2000, "gpu": 9})) == "root.team.leaf"


# -- dynamic queues -----------------------------------------------------------------------------------------------

CREATE = [{"name": "provided", "create": True}]


def quota(**amounts: object) -> str:
    return json.dumps({"resources": {name: {"value": value} for name, value in amounts.items()}})


def limits(s: Scheduler, path: str) -> tuple[object, object, int]:
    queue = s.cluster.partitions["default"].root.find(path)
    assert queue is not None
    return queue.max, queue.guaranteed, queue.max_applications


def test_a_dynamic_leaf_takes_the_template_whole() -> None:
    """A made parent passes it on; a template of its own, even a smaller one, replaces it."""
    template = {
        "maxapplications": 2,
        "properties": {"priority.offset": "5", "": "x", "blank": " "},
        "resources": {"max": {"vcore": 4}, "guaranteed": {"vcore": 0}},
    }
    own = {"name": "own", "parent": True, "childtemplate": {"maxapplications": 7}}
    none = {"name": "none", "parent": True, "childtemplate": {"properties": {"": "x"}}}
    s = scheduler(CREATE, [{"name": "par", "parent": True, "childtemplate": template, "queues": [own, none]}])
    for i, path in enumerate(["root.par.x", "root.par.a.b", "root.par.none.z", "root.par.own.z"]):
        assert place(s, path, id=f"app-{i}") == path
    assert limits(s, "root.par.x") == limits(s, "root.par.a.b") == limits(s, "root.par.none.z")
    assert limits(s, "root.par.x") == ({"vcore": 4000}, None, 2)
    assert limits(s, "root.par.own.z") == (None, None, 7)
    assert limits(s, "root.par.a") == (None, None, 0)
    made = s.cluster.partitions["default"].root.find("root.par.x")
    assert made is not None
    assert made.properties.raw == {"priority.offset": "5"}


def test_a_dynamic_queue_inherits_no_properties() -> None:
    """Only a template gives it some."""
    queues = [{"name": "par", "parent": True, "properties": {"application.sort.policy": "fair"}}]
    assert place(scheduler(CREATE, queues), "root.par.x", placeholder_ask=GANG) == "root.par.x"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"namespace.resourcequota": quota(vcore=3000, memory=0)}, ({"vcore": 3000, "memory": 0}, None, 0)),
        ({"NAMESPACE.resourceguaranteed": quota(vcore=3)}, (None, {"vcore": 3}, 0)),
        ({"namespace.resourcemaxapps": "3"}, (None, None, 3)),
        ({"namespace.resourcemaxapps": "0"}, (None, None, 0)),
        ({"namespace.resourcemaxapps": "-1"}, (None, None, 0)),
        ({"namespace.resourcemaxapps": "²"}, (None, None, 0)),
        ({"namespace.resourcequota": quota(vcore=0)}, (None, None, 0)),
        ({"namespace.resourcequota": quota(vcore=5, memory=-1)}, (None, None, 0)),
        ({"namespace.resourcequota": quota(vcore=1.5)}, (None, None, 0)),
        ({"namespace.resourcequota": quota(vcore=True)}, (None, None, 0)),
        ({"namespace.resourcequota": quota(vcore=2**63)}, (None, None, 0)),
        ({"namespace.resourcequota": "null"}, (None, None, 0)),
        ({"namespace.resourcequota": "[" * 5000}, (None, None, 0)),
        ({"namespace.resourcequota": '{"resources": {"vcore": 3}}'}, (None, None, 0)),
    ],
)
def test_namespace_tags_limit_a_dynamic_leaf(tags: dict[str, str], expected: tuple[object, object, int]) -> None:
    """What cannot be read, or is not above zero, changes nothing."""
    s = scheduler(CREATE)
    assert place(s, "root.ns", tags=tags) == "root.ns"
    assert limits(s, "root.ns") == expected


def test_a_later_application_replaces_the_limits() -> None:
    """One kind that is stated clears the other; none that can be read leaves both."""
    s = scheduler(CREATE)
    place(s, "root.ns", tags={"namespace.resourcequota": quota(vcore=3)})
    place(s, "root.ns", id="b", tags={"namespace.resourcequota": "bad"})
    assert limits(s, "root.ns") == ({"vcore": 3}, None, 0)
    place(s, "root.ns", id="c", tags={"namespace.resourceguaranteed": quota(vcore=2)})
    assert limits(s, "root.ns") == (None, {"vcore": 2}, 0)


def test_a_queue_of_the_file_ignores_namespace_tags() -> None:
    """Its limits are the file's."""
    s = scheduler(CREATE)
    place(s, "root.leaf", tags={"namespace.resourcequota": quota(vcore=3)})
    assert limits(s, "root.leaf") == (None, None, 0)


def test_a_larger_quota_lets_waiting_work_start() -> None:
    """The old limit is no obstacle any more."""
    s = scheduler(CREATE)
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 9}))), 0)
    place(s, "root.ns", tags={"namespace.resourcequota": quota(vcore=1)})
    asks = tuple(AskSpec(application="app", key=f"a{i}", resources=Resources({"vcore": 1})) for i in range(3))
    s.handle(AddAsks(asks), 0)
    assert len(running(s)) == 1
    place(s, "root.ns", id="b", tags={"namespace.resourcequota": quota(vcore=3)})
    assert len(running(s)) == 3
    s.check()


def running(s: Scheduler) -> list[str]:
    s.schedule(s.cluster.now_ms)
    apps = s.cluster.partitions["default"].applications.values()
    return [a.key for app in apps for a in app.allocated_asks()]


def paths(s: Scheduler) -> list[str]:
    return [q.path for q in s.cluster.partitions["default"].root.walk()]


def test_made_queues_are_removed_when_they_are_empty() -> None:
    """At the next whole ten seconds, with the made ones above them."""
    s = scheduler(CREATE, [PARENT])
    place(s, "root.par.a.b")
    s.schedule(25_000)
    assert paths(s) == ["root", "root.par", "root.par.a", "root.par.a.b"]
    s.handle(RemoveApplication("app"), 25_000)
    assert s.next_wakeup_ms() == 30_000
    s.schedule(29_999)
    assert len(paths(s)) == 4
    removed = [d.queue for d in s.schedule(30_000) if isinstance(d, QueueChanged) and d.change == "removed"]
    assert removed == ["root.par.a.b", "root.par.a"]
    assert paths(s) == ["root", "root.par"]
    assert s.next_wakeup_ms() is None


def test_a_queue_that_is_used_again_stays() -> None:
    """It is looked at when the moment comes."""
    s = scheduler(CREATE)
    place(s, "root.x")
    s.handle(RemoveApplication("app"), 1000)
    place(s, "root.x")
    s.schedule(10_000)
    assert "root.x" in paths(s)


def test_a_queue_made_for_an_application_that_was_refused_goes_too() -> None:
    """Though it never had one."""
    s = scheduler(CREATE, childtemplate={"properties": {"application.sort.policy": "fair"}})
    assert place(s, "root.x", placeholder_ask=GANG).startswith("!")
    assert "root.x" in paths(s)
    s.schedule(10_000)
    assert "root.x" not in paths(s)


def test_nothing_is_made_below_a_queue_that_drains() -> None:
    """And an application is not placed into it."""
    s = scheduler(CREATE)
    place(s, "root.leaf", id="old")
    place(s, "root.par.made", id="older")
    s.handle(
        Configure(
            load_text(
                json.dumps({"partitions": [{"placementrules": CREATE, "queues": [{"name": "root", "submitacl": "*"}]}]})
            )
        ),
        0,
    )
    assert place(s, "root.leaf") == NO_RULE
    assert "marked for deletion: root.par" in place(s, "root.par.new")
    assert place(s, "root.par.made", id="app3") == "root.par.made"
