"""Whereabouts: what a user may say about where a job runs, in plain fields, and the constraints that it means.

Decides the four short forms and their meaning on this machine: a selector on the node's attributes, host ports, and
labels of other work that it has to run beside or apart from. Never whether a node suits. Invariant: `fields_of` gives
back what `where_of` was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.core.model.constraints import ANYWHERE, IN, AffinityTerm, Constraints, Requirement


def where_of(
    node_selector: Mapping[str, str],
    ports: Sequence[str],
    beside: Mapping[str, str],
    apart_from: Mapping[str, str],
) -> Constraints:
    """The constraints of a job. Each label of `beside` and of `apart_from` counts by itself, on the same node."""
    if not (node_selector or ports or beside or apart_from):
        return ANYWHERE
    return Constraints(
        selector=_conditions(node_selector),
        ports=tuple(ports),
        affinity=tuple(AffinityTerm((each,)) for each in _conditions(beside)),
        anti_affinity=tuple(AffinityTerm((each,)) for each in _conditions(apart_from)),
    )


def fields_of(where: Constraints) -> dict[str, Any]:
    """The fields that say this."""
    return {
        "node_selector": {each.key: each.values[0] for each in where.selector},
        "ports": list(where.ports),
        "beside": {term.selector[0].key: term.selector[0].values[0] for term in where.affinity},
        "apart_from": {term.selector[0].key: term.selector[0].values[0] for term in where.anti_affinity},
    }


def _conditions(wanted: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, IN, (value,)) for key, value in sorted(wanted.items()))
