"""Constraints as values: what is equal may run on the same nodes, and what little says."""

from __future__ import annotations

from dataclasses import fields, replace

from fairlead.core.model.constraints import (
    ANYWHERE,
    HOSTNAME,
    NO_SCHEDULE,
    AffinityTerm,
    Constraints,
    PreferredNodes,
    PreferredWork,
    Requirement,
    SpreadTerm,
    Taint,
    Toleration,
)

SOME = Constraints(
    selector=(Requirement("zone", values=("a",)),),
    node_terms=((Requirement("gpu", "Exists"),),),
    tolerations=(Toleration("k"),),
    affinity=(AffinityTerm((Requirement("app", values=("x",)),)),),
    anti_affinity=(AffinityTerm((Requirement("app", values=("y",)),), "zone"),),
    spread=(SpreadTerm((Requirement("app", values=("x",)),), "zone", 2),),
    ports=("TCP/0.0.0.0/80",),
    volumes=("data@disks",),
    preferred_nodes=(PreferredNodes(1, (Requirement("zone", values=("a",)),)),),
    preferred_work=(PreferredWork(1, AffinityTerm((Requirement("app", values=("x",)),))),),
    preferred_spread=(SpreadTerm((Requirement("app", values=("x",)),), "zone"),),
)


def test_equal_constraints_are_one_key() -> None:
    """So that asks that may run on the same nodes are looked at once."""
    assert {SOME: 1}[replace(SOME)] == 1
    assert hash(SOME) == hash(replace(SOME))


def test_each_part_tells_two_apart() -> None:
    """Without any one of them it is another value."""
    for part in fields(Constraints):
        assert replace(SOME, **{part.name: ()}) != SOME, part.name


def test_nothing_said_is_anywhere() -> None:
    """The empty value has no condition at all."""
    assert Constraints() == ANYWHERE
    assert not any(getattr(ANYWHERE, part.name) for part in fields(Constraints))


def test_what_little_means() -> None:
    """A term is about one node, a taint keeps away new work, a toleration is of every effect."""
    assert AffinityTerm(()).topology_key == HOSTNAME
    assert Taint("k").effect == NO_SCHEDULE
    assert Toleration("k").effect == ""
    assert (SpreadTerm((), "zone").max_skew, SpreadTerm((), "zone").min_domains) == (1, 1)
