"""Quotas by priority class: what each one lets admitted work ask for, and what has been admitted under it.

Decides whether there is room in every quota that an ask comes under, and whether a limited class is allowed there.
Never touches work that was admitted, even above a quota that was lowered since. Invariant: what a quota counts is the
sum of everything admitted (what waits and what runs, placeholders too) in its queue and below whose class matches.

A quota holds for the queue of its path in every partition, all of them together. The queue need not be there yet:
placement may make it later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.core.books.declared import Declared, Problem
from fairlead.core.model.constraints import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Requirement
from fairlead.core.model.names import QUEUE_NAME, SUBDOMAIN, SUBDOMAIN_RULE
from fairlead.core.model.plain import to_plain
from fairlead.core.model.reasons import ClassNotAllowed, QuotaExceeded, Reason
from fairlead.core.model.resources import Book, Items, add_to, negative, take_from
from fairlead.core.model.specs import QuotaSpec

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask

SCOPE_KEY = "PriorityClass"
"""The only thing that scopes are about."""
SCOPE_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)


def matches(spec: QuotaSpec, priority_class: str) -> bool:
    """Whether work of this class (empty: of none) comes under the quota."""
    return all(_holds(scope, priority_class) for scope in spec.scopes)


def _holds(scope: Requirement, priority_class: str) -> bool:
    if scope.operator in (IN, NOT_IN):
        return (priority_class in scope.values) == (scope.operator == IN)
    return bool(priority_class) == (scope.operator == EXISTS)


def quota_problem(spec: QuotaSpec) -> Problem:
    """What is wrong with a quota."""
    if not SUBDOMAIN.fullmatch(spec.name):
        return "name", f"'{spec.name[:60]}' is no name for a quota; {SUBDOMAIN_RULE}"
    levels = spec.queue.split(".")
    if levels[0].lower() != "root" or not all(map(QUEUE_NAME.fullmatch, levels)):
        return "queue", f"'{spec.queue[:60]}' is no path of a queue; give the whole path, such as root.team"
    if not spec.resources and not spec.scopes:
        return "resources", f"quota {spec.name} limits nothing; give amounts, or scopes that allow a limited class"
    if any(not name or amount < 0 for name, amount in spec.resources):
        return "resources", f"quota {spec.name} has an amount without a name or below 0; give 0 or more"
    for index, scope in enumerate(spec.scopes):
        if problem := _scope_problem(scope):
            return f"scopes[{index}]", problem
    return None


def _scope_problem(scope: Requirement) -> str:
    if scope.key != SCOPE_KEY:
        return f"a scope is about {SCOPE_KEY}, not '{scope.key[:60]}'"
    if scope.operator not in SCOPE_OPERATORS:
        return f"'{scope.operator[:60]}' is no operator of a scope; use {', '.join(SCOPE_OPERATORS)}"
    if scope.operator in (IN, NOT_IN) and not scope.values:
        return f"{scope.operator} needs the names of priority classes as values"
    if scope.operator in (EXISTS, DOES_NOT_EXIST) and scope.values:
        return f"{scope.operator} takes no values; remove them"
    return ""


@dataclass(slots=True)
class Quota:
    """One quota and what has been admitted under it."""

    spec: QuotaSpec
    used: Book = field(default_factory=dict)
    works: int = 0
    """How many asks and allocations come under it."""

    def add(self, items: Items, works: int) -> None:
        """So much more has been admitted."""
        self.works += works
        add_to(self.used, items)

    def shortage(self, items: Items, beside: Iterable[Ask] = ()) -> QuotaExceeded | None:
        """Which of its amounts this ask would exceed, with the numbers; None when there is room. Of what is admitted
        `beside` does not count.

        An amount that the ask does not need cannot keep it out, however much above it the quota is.
        """
        most, used = dict(self.spec.resources), dict(self.used)
        for other in beside:
            if matches(self.spec, other.spec.priority_class):
                take_from(used, other.items)
        short = {name: n for name, n in items if n > 0 and name in most and used.get(name, 0) + n > most[name]}
        if not short:
            return None
        amounts = {name: used.get(name, 0) for name in short}
        return QuotaExceeded(self.spec.name, self.spec.queue, short, amounts, {name: most[name] for name in short})


class ClassQuotas(Declared[QuotaSpec]):
    """The quotas of all partitions."""

    def __init__(self, asks: Callable[[], Iterable[Ask]]) -> None:
        super().__init__("quota", quota_problem)
        self._asks: Callable[[], Iterable[Ask]] = asks
        """All work that waits or runs."""
        self._of: dict[str, Quota] = {}
        self._by_queue: dict[str, list[Quota]] = {}

    def by_name(self) -> list[Quota]:
        """Every quota with what is admitted under it, in order of name."""
        return [self._of[name] for name in sorted(self._of)]

    def _changed(self, name: str) -> None:
        self._of.pop(name, None)
        if name in self._specs:
            self._of[name] = Quota(self._specs[name])
        self._index()
        for ask in self._asks() if name in self._of else ():
            for quota in self.over(ask.app.queue.path, ask.spec.priority_class):
                if quota.spec.name == name:
                    quota.add(ask.items, 1)

    # -- what comes under them ----------------------------------------------------------------------------------------

    def over(self, path: str, priority_class: str) -> Iterator[Quota]:
        """The quotas that work of this class comes under in the queue: those of the queue first, then further up."""
        level = path
        while level:
            for quota in self._by_queue.get(level, ()):
                if matches(quota.spec, priority_class):
                    yield quota
            level = level.rpartition(".")[0]

    def obstacle(
        self, path: str, priority_class: str, items: Items, limited: bool, beside: Sequence[Ask] = ()
    ) -> Reason | None:
        """Why an ask is not admitted to the queue; None when nothing is in the way.

        `limited`: its class is allowed only where a quota selects it by its scopes. `beside`: work of the queue whose
        place it may take.
        """
        if limited and (refused := self.why_not_allowed(path, priority_class)) is not None:
            return refused
        over = self.over(path, priority_class)
        return next((short for quota in over if (short := quota.shortage(items, beside)) is not None), None)

    def why_not_allowed(self, path: str, priority_class: str) -> Reason | None:
        """Why a class that is allowed only where a quota selects it by its scopes is not in the queue; None: it is."""
        if any(quota.spec.scopes for quota in self.over(path, priority_class)):
            return None
        return ClassNotAllowed(priority_class, path)

    def count(self, ask: Ask, sign: int) -> None:
        """`ask` was admitted, or is there already (1); it is gone, whether it waited or ran (-1)."""
        if self._of:
            items = ask.items if sign > 0 else negative(ask.items)
            self.add(ask.app.queue.path, ask.spec.priority_class, items, sign)

    def add(self, path: str, priority_class: str, items: Items, works: int = 0) -> None:
        """What is admitted in the queue grows by so much."""
        for quota in self.over(path, priority_class):
            quota.add(items, works)

    def copied(self) -> ClassQuotas:
        """The same quotas with the same figures, to try something with."""
        other = ClassQuotas(self._asks)
        other._specs = dict(self._specs)
        other._of = {name: Quota(quota.spec, dict(quota.used), quota.works) for name, quota in self._of.items()}
        other._index()
        return other

    def _index(self) -> None:
        self._by_queue = {}
        for quota in self.by_name():
            self._by_queue.setdefault(quota.spec.queue.lower(), []).append(quota)

    # -- as plain values ----------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """The quotas; what has been admitted under them is counted again."""
        return {"quotas": [to_plain(spec) for spec in self._specs.values()], "from_file": list(self._filed)}

    def load(self, state: dict[str, Any]) -> None:
        """What `dump` wrote down, with nothing admitted yet."""
        self._load(state["quotas"], state["from_file"])
