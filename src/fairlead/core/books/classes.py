"""Priority classes: which there are, and which may be made, changed or removed.

Decides whether a class is valid and which one is the default. Never touches work: a class counts when work is admitted
(`policy.events.admission`), and what was admitted keeps what it got. Invariant: the two built-in classes are always
there, at most one class is the default, and no other than the built-in ones is above the highest value of users.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fairlead.core.books.declared import Declared, Problem
from fairlead.core.model.names import SUBDOMAIN, SUBDOMAIN_RULE
from fairlead.core.model.plain import to_plain
from fairlead.core.model.reasons import Reason, Refused
from fairlead.core.model.specs import PRIORITY_MIN, PriorityClassSpec

VALUE_MAX = 1_000_000_000
"""The highest value of a class that is not built in."""
NEVER, LOWER = "Never", "PreemptLowerPriority"
POLICIES = (LOWER, NEVER)
RESERVED_PREFIX = "system-"
BUILT_IN = (
    PriorityClassSpec(
        name="system-node-critical",
        value=2_000_001_000,
        description="for work without which a node is of no use",
    ),
    PriorityClassSpec(
        name="system-cluster-critical",
        value=2_000_000_000,
        description="for work without which nothing else runs",
    ),
)


def class_problem(spec: PriorityClassSpec) -> Problem:
    """What is wrong with a class."""
    if not SUBDOMAIN.fullmatch(spec.name):
        return "name", f"'{spec.name[:60]}' is no name for a priority class; {SUBDOMAIN_RULE}"
    if spec.name.startswith(RESERVED_PREFIX):
        return "name", f"{spec.name} begins with {RESERVED_PREFIX}, which is for the built-in classes; choose another"
    if not PRIORITY_MIN <= spec.value <= VALUE_MAX:
        return "value", f"{spec.value} is out of range; give a whole number from {PRIORITY_MIN} to {VALUE_MAX}"
    if spec.min_runtime_ms < 0:
        return "minRuntime", f"{spec.min_runtime_ms} ms is negative; give a duration such as 10m, or leave it out"
    if spec.preemption_policy not in POLICIES:
        return "preemptionPolicy", f"'{spec.preemption_policy[:60]}' is no policy; use {LOWER} or {NEVER}"
    return None


class PriorityClasses(Declared[PriorityClassSpec]):
    """The classes that new work may name."""

    def __init__(self) -> None:
        super().__init__("priority class", class_problem)
        self._specs = {spec.name: spec for spec in BUILT_IN}
        self.default: PriorityClassSpec | None = None
        """What work gets that names neither class nor priority."""

    def __iter__(self) -> Iterator[PriorityClassSpec]:
        """Every class: 1. higher value first, 2. by name."""
        return iter(sorted(self._specs.values(), key=lambda spec: (-spec.value, spec.name)))

    def why_not_set(self, spec: PriorityClassSpec) -> Reason | None:
        """Why the class cannot be made or changed so; None when it can."""
        rival = self.default
        refused = super().why_not_set(spec)
        if refused is None and spec.global_default and rival is not None and rival.name != spec.name:
            return Refused(f"{rival.name} is the global default already, and there is one at most; change that first")
        return refused

    def why_not_remove(self, name: str) -> Reason | None:
        """Why the class cannot be removed; None when it can."""
        if any(name == spec.name for spec in BUILT_IN):
            return Refused(f"priority class {name} is built in and cannot be removed")
        return super().why_not_remove(name)

    def _changed(self, name: str) -> None:  # noqa: ARG002 (there is one default, whichever class changed)
        self.default = next((spec for spec in self._specs.values() if spec.global_default), None)

    def file_problems(self, specs: Iterable[PriorityClassSpec]) -> list[str]:
        """Why the classes of a new queue file cannot be put in force, given those that it does not declare."""
        wanted = {spec.name: spec for spec in specs}
        found = self.flaws(wanted.values())
        default = self.default
        rivals = [s.name for s in wanted.values() if s.global_default]
        if len(rivals) > 1:
            found.append(f"priority classes {', '.join(rivals)} cannot all be the global default: there is one at most")
        if rivals and default is not None and default.name not in {**wanted, **self._filed}:
            found.append(
                f"priority class {rivals[0]} cannot be the global default: {default.name}, which is not in the file, "
                f"is one; change or remove that first"
            )
        return found

    def dump(self) -> dict[str, Any]:
        """All but the built-in ones."""
        own = [to_plain(spec) for spec in self._specs.values() if spec not in BUILT_IN]
        return {"classes": own, "from_file": list(self._filed)}

    def load(self, state: dict[str, Any]) -> None:
        """What `dump` wrote down."""
        self._load(state["classes"], state["from_file"])
