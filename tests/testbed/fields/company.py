"""Fields of the affinity of pods to pods, and of spreads."""

from __future__ import annotations

from typing import Any

from testbed.fields.part import HOST, REQUIRED, Manifest, Part, obeys

OTHERS = {"app": "others"}


def company(kind: str, labels: Manifest, key: str = HOST, **term: Any) -> Manifest:
    return {kind: {REQUIRED: [{"topologyKey": key, "labelSelector": {"matchLabels": labels}, **term}]}}


@obeys("PodAffinity." + REQUIRED)
def with_another(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", labels=part.alike)
    part.pod(affinity=company("podAffinity", part.alike) if there else {})


@obeys("PodAntiAffinity." + REQUIRED)
def apart(part: Part, there: bool) -> None:
    """It keeps away, and is kept away."""
    part.nodes("a", "b", "c")
    part.runs("a", labels=part.alike)
    part.runs("b", affinity=company("podAntiAffinity", {"it": part.name}) if there else {})
    part.pod(labels={"it": part.name}, affinity=company("podAntiAffinity", part.alike) if there else {})


@obeys("PodAffinityTerm.labelSelector")
def selector_of_a_term(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", labels=part.alike)
    part.pod(affinity=company("podAntiAffinity", part.alike if there else OTHERS))


@obeys("PodAffinityTerm.topologyKey")
def key_of_a_term(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", labels=part.alike)
    part.pod(affinity=company("podAntiAffinity", part.alike, HOST if there else "part"))


@obeys("PodAffinityTerm.namespaces")
def namespaces(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", labels=part.alike, namespace="second")
    part.pod(affinity=company("podAntiAffinity", part.alike, namespaces=["second" if there else "third"]))


@obeys("PodAffinityTerm.namespaceSelector")
def namespace_selector(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", labels=part.alike, namespace="third")
    team = {"matchLabels": {"team": "b" if there else "a"}}
    part.pod(affinity=company("podAntiAffinity", part.alike, namespaceSelector=team))


def tiers(part: Part, **term: Any) -> None:
    part.nodes()
    part.runs("a", labels={**part.alike, "tier": "x"})
    part.runs("b", labels={**part.alike, "tier": "y"})
    part.pod(labels={**part.alike, "tier": "x"}, affinity=company("podAntiAffinity", part.alike, **term))


@obeys("PodAffinityTerm.matchLabelKeys")
def match_label_keys(part: Part, there: bool) -> None:
    tiers(part, **({"matchLabelKeys": ["tier"]} if there else {}))


@obeys("PodAffinityTerm.mismatchLabelKeys")
def mismatch_label_keys(part: Part, there: bool) -> None:
    tiers(part, **({"mismatchLabelKeys": ["tier"]} if there else {}))


# -- spreads ------------------------------------------------------------------------------------------------------


def spread(part: Part, labels: Manifest | None = None, **term: Any) -> list[Manifest]:
    usual = {"topologyKey": part.zone, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return [{**usual, "labelSelector": {"matchLabels": labels or part.alike}, **term}]


def one_more_in_a(part: Part) -> None:
    part.nodes()
    part.runs("a", labels=part.alike)


@obeys("PodSpec.topologySpreadConstraints")
def spreads(part: Part, there: bool) -> None:
    one_more_in_a(part)
    part.pod(labels=part.alike, topologySpreadConstraints=spread(part) if there else [])


@obeys("TopologySpreadConstraint.labelSelector")
def selector_of_a_spread(part: Part, there: bool) -> None:
    one_more_in_a(part)
    part.pod(labels=part.alike, topologySpreadConstraints=spread(part, part.alike if there else OTHERS))


@obeys("TopologySpreadConstraint.maxSkew")
def max_skew(part: Part, there: bool) -> None:
    one_more_in_a(part)
    part.pod(labels=part.alike, topologySpreadConstraints=spread(part, maxSkew=1 if there else 2))


@obeys("TopologySpreadConstraint.topologyKey")
def key_of_a_spread(part: Part, there: bool) -> None:
    one_more_in_a(part)
    part.pod(labels=part.alike, topologySpreadConstraints=spread(part, topologyKey=part.zone if there else "part"))


@obeys("TopologySpreadConstraint.whenUnsatisfiable")
def when_unsatisfiable(part: Part, there: bool) -> None:
    one_more_in_a(part)
    what = "DoNotSchedule" if there else "ScheduleAnyway"
    part.pod(labels=part.alike, topologySpreadConstraints=spread(part, whenUnsatisfiable=what))


@obeys("TopologySpreadConstraint.minDomains")
def min_domains(part: Part, there: bool) -> None:
    one_more_in_a(part)
    part.runs("b", labels=part.alike)
    part.pod(labels=part.alike, topologySpreadConstraints=spread(part, **({"minDomains": 3} if there else {})))


@obeys("TopologySpreadConstraint.matchLabelKeys")
def keys_of_a_spread(part: Part, there: bool) -> None:
    part.nodes()
    part.runs("a", labels={**part.alike, "tier": "y"})
    keys = {"matchLabelKeys": ["tier"]} if there else {}
    part.pod(labels={**part.alike, "tier": "x"}, topologySpreadConstraints=spread(part, **keys))


def with_an_empty_one(part: Part, **third: Any) -> None:
    one_more_in_a(part)
    part.runs("b", labels=part.alike)
    part.node("c", labels={part.zone: "c"}, **third)


@obeys("TopologySpreadConstraint.nodeAffinityPolicy")
def nodes_that_are_not_selected(part: Part, there: bool) -> None:
    with_an_empty_one(part)
    only = {"key": part.zone, "operator": "In", "values": ["a", "b"]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [only]}]}}}
    policy = {"nodeAffinityPolicy": "Ignore"} if there else {}
    part.pod(labels=part.alike, affinity=affinity, topologySpreadConstraints=spread(part, **policy))


@obeys("TopologySpreadConstraint.nodeTaintsPolicy")
def nodes_with_taints(part: Part, there: bool) -> None:
    with_an_empty_one(part, taints=[{"key": "gpu", "effect": "NoSchedule"}])
    policy = {"nodeTaintsPolicy": "Honor"} if there else {}
    part.pod(labels=part.alike, topologySpreadConstraints=spread(part, **policy))
