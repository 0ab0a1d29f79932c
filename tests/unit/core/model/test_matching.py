"""Single conditions, taints and ports, and what is refused because it makes no sense."""

from __future__ import annotations

import pytest

from fairlead.core.model.constraints import AffinityTerm, Constraints, Requirement, SpreadTerm, Taint, Toleration
from fairlead.core.model.matching import (
    collide,
    flaw,
    holds,
    is_selected,
    is_tolerated,
    matches,
    must_leave,
    port_of,
    taint_flaw,
    tolerates,
)

LABELS = {"zone": "a", "size": "10", "empty": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("missing", "In", ("a",), False),
        ("zone", "NotIn", ("a", "b"), False),
        ("zone", "NotIn", ("b",), True),
        ("missing", "NotIn", ("a",), True),
        ("empty", "Exists", (), True),
        ("missing", "Exists", (), False),
        ("empty", "DoesNotExist", (), False),
        ("missing", "DoesNotExist", (), True),
        ("size", "Gt", ("9",), True),
        ("size", "Gt", ("10",), False),
        ("size", "Lt", ("11",), True),
        ("size", "Lt", ("10",), False),
        ("zone", "Gt", ("1",), False),
        ("missing", "Lt", ("1",), False),
    ],
)
def test_each_operator(key: str, operator: str, values: tuple[str, ...], expected: bool) -> None:
    """What is absent is not in anything, and neither above nor below a number; numbers are compared as numbers."""
    assert holds(Requirement(key, operator, values), LABELS) is expected


def test_all_conditions_of_a_selector_must_hold() -> None:
    """One that does not hold is enough to fail; no condition at all matches everything."""
    yes, no = Requirement("zone", "In", ("a",)), Requirement("zone", "In", ("b",))
    assert matches((yes,), LABELS)
    assert not matches((yes, no), LABELS)
    assert matches((), {})


def test_one_of_the_node_terms_is_enough_beside_the_selector() -> None:
    """The selector and some whole term must hold."""
    yes, no = Requirement("zone", "In", ("a",)), Requirement("zone", "In", ("b",))
    assert is_selected(Constraints(node_terms=((no,), (yes,))), LABELS)
    assert not is_selected(Constraints(node_terms=((no,), (yes, no))), LABELS)
    assert not is_selected(Constraints(selector=(no,), node_terms=((yes,),)), LABELS)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("k", "Equal", "v"), True),
        (Toleration("k", "Equal", "w"), False),
        (Toleration("k", "Equal"), False),
        (Toleration("other", "Equal", "v"), False),
        (Toleration("k", "Exists"), True),
        (Toleration("k", "Exists", "", "NoSchedule"), True),
        (Toleration("k", "Exists", "", "NoExecute"), False),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", "", "NoExecute"), False),
    ],
)
def test_which_toleration_is_for_a_taint(toleration: Toleration, expected: bool) -> None:
    """Key and value, or the key alone, or everything; and the effect, or every effect."""
    assert tolerates(toleration, Taint("k", "v", "NoSchedule")) is expected


@pytest.mark.parametrize(
    ("operator", "own", "value", "expected"),
    [
        ("Gt", "950", "951", True),
        ("Gt", "950", "950", False),
        ("Gt", "-100", "-200", False),
        ("Gt", "9223372036854775806", "9223372036854775807", True),
        ("Gt", "950", "high", False),
        ("Gt", "950", "", False),
        ("Gt", "100", "0200", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Lt", "0", "-1", True),
        ("Lt", "100", "+20", False),
        ("Lt", "5", "4.5", False),
    ],
)
def test_tolerations_of_what_is_above_or_below_a_number(operator: str, own: str, value: str, expected: bool) -> None:
    """Kubernetes has them from 1.35 on. What is no plain integer is neither."""
    toleration = Toleration("sla", operator, own)
    assert tolerates(toleration, Taint("sla", value)) is expected
    assert not tolerates(toleration, Taint("other", value))
    assert flaw(Constraints(tolerations=(toleration,))) == ""
    assert "needs an integer" in flaw(Constraints(tolerations=(Toleration("sla", operator, "1_0"),)))


def test_a_preference_keeps_nobody_away() -> None:
    """`PreferNoSchedule` is no filter; of the others each must be tolerated."""
    soft, hard, evicting = Taint("a", "", "PreferNoSchedule"), Taint("b"), Taint("c", "", "NoExecute")
    assert is_tolerated((soft,), ())
    assert not is_tolerated((soft, hard), ())
    assert is_tolerated((hard, evicting), (Toleration("b", "Exists"), Toleration("c", "Exists")))
    assert not is_tolerated((hard, evicting), (Toleration("b", "Exists"),))


def test_only_no_execute_makes_running_work_leave() -> None:
    """`NoSchedule` is for newcomers."""
    assert must_leave((Taint("c", "", "NoExecute"),), ())
    assert not must_leave((Taint("c"), Taint("p", "", "PreferNoSchedule")), ())
    assert not must_leave((Taint("c", "", "NoExecute"),), (Toleration("c", "Exists", "", "NoExecute"),))


def test_every_address_collides_with_each() -> None:
    """Without an address a port is meant on every one; the protocol is written in capitals or not."""
    assert port_of("tcp//80") == (("TCP", "80"), "0.0.0.0")
    assert collide("0.0.0.0", "10.0.0.1")
    assert collide("10.0.0.1", "0.0.0.0")
    assert collide("10.0.0.1", "10.0.0.1")
    assert not collide("10.0.0.1", "10.0.0.2")


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (Constraints(selector=(Requirement("a", "Equals", ("b",)),)), "selector: 'Equals' is not an operator"),
        (Constraints(selector=(Requirement("a", "In"),)), "selector: a In needs at least one value"),
        (Constraints(node_terms=((Requirement("a", "Exists", ("b",)),),)), "node_terms: a Exists takes no value"),
        (Constraints(selector=(Requirement("a", "Gt", ("b",)),)), "selector: a Gt needs exactly one integer"),
        (Constraints(selector=(Requirement("", "Exists"),)), "selector: a condition has no key"),
        (Constraints(tolerations=(Toleration(),)), "tolerations: without a key the operator must be Exists"),
        (Constraints(tolerations=(Toleration("k", "In"),)), "tolerations: 'In' is not an operator"),
        (Constraints(tolerations=(Toleration("k", effect="Never"),)), "tolerations: 'Never' is not an effect"),
        (Constraints(affinity=(AffinityTerm((), ""),)), "affinity: a term has no topology key"),
        (
            Constraints(anti_affinity=(AffinityTerm((Requirement("a", "Lt", ("1",)),), "zone"),)),
            "anti_affinity: Gt and Lt are for attributes of nodes",
        ),
        (Constraints(spread=(SpreadTerm((), "zone", 0),)), "spread: max_skew and min_domains must be at least 1"),
        (Constraints(ports=("8080",)), "ports: '8080' is not protocol/ip/port"),
        (Constraints(ports=("TCP//70000",)), "ports: 'TCP//70000' is not protocol/ip/port"),
    ],
)
def test_constraints_without_sense_say_what_is_wrong_and_where(where: Constraints, text: str) -> None:
    """The place first, then what is wrong with it."""
    assert flaw(where).startswith(text)


def test_good_constraints_have_no_flaw() -> None:
    """Nothing to say."""
    term = AffinityTerm((Requirement("app", "In", ("web",)),), "zone")
    where = Constraints(affinity=(term,), spread=(SpreadTerm(term.selector, "zone", 1, 2),), ports=("UDP/1.2.3.4/53",))
    assert flaw(where) == ""


def test_a_taint_needs_a_key_and_a_known_effect() -> None:
    """Both are said."""
    assert taint_flaw(Taint("")) == "a taint has no key"
    assert taint_flaw(Taint("k", "", "Never")).startswith("'Never' is not an effect")
    assert taint_flaw(Taint("k", "", "NoExecute")) == ""
