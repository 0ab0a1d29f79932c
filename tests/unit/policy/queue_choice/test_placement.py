"""Placement: which queue an application gets by the rules, and why not."""

from __future__ import annotations

import pytest
from placed_applications import GANG, LEAF, NO_RULE, place, scheduler

from fairlead.core.model.resources import Resources

FORCE = {"application.create.force": "true"}
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
        "! queue root.team.leaf cannot fit application app: its gang needs cpu 3 together, "
        "and cpu 2 is all that may be used there"
    )
    assert place(s, "root.team.leaf", placeholder_ask=Resources({"vcore": 2000, "gpu": 9})) == "root.team.leaf"
