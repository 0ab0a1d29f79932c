"""The check of what is admitted: classes, quotas and budgets, and what is held until its conditions are met.

Decides nothing and changes nothing; a violation is an AssertionError that names the place. Part of `invariants.books`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.books.admission import every_ask
from fairlead.core.books.class_quotas import Quota
from fairlead.core.books.classes import BUILT_IN
from fairlead.core.books.windows import TIMER
from fairlead.core.model.resources import pruned

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Cluster, Partition
    from fairlead.core.books.class_quotas import ClassQuotas
    from fairlead.core.books.classes import Classes
    from fairlead.core.books.held_asks import HeldAsks


def check_admission(cluster: Cluster) -> None:
    """Assert what always holds for what was declared, and that what is counted for it is what is there."""
    check_classes(cluster.admission.classes)
    check_quotas(cluster.admission.quotas, list(every_ask(cluster.partitions.values())))
    for partition in cluster.partitions.values():
        check_budgets(partition)
        check_windows(partition)
        for application, held in partition.held_asks:
            assert application in partition.applications, f"{held.spec.key} is held for {application}, which is gone"
            assert held.spec.key not in partition.applications[application].asks, f"{held.spec.key} has entered already"
            may_enter = held.conditions.met(partition.now_ms) and not partition.applications[application].is_full
            assert not may_enter, f"{held.spec.key} is held though its conditions are met"
        check_held_asks(partition.held_asks, partition.now_ms)


def check_classes(classes: Classes) -> None:
    """Assert that the built-in classes are there, and one default at most."""
    specs = classes._specs
    assert all(specs.get(spec.name) == spec for spec in BUILT_IN), "a built-in priority class is not there"
    defaults = [spec for spec in specs.values() if spec.global_default]
    assert len(defaults) < 2, f"two global defaults: {[spec.name for spec in defaults]}"
    assert classes.default == (defaults[0] if defaults else None), f"{classes.default} is not the global default"
    assert all(name in specs for name in classes._filed), f"the file's {list(classes._filed)} are not there"


def check_quotas(quotas: ClassQuotas, asks: list[Ask]) -> None:
    """Assert that every quota counts exactly what is there."""
    again = {name: Quota(quota.spec) for name, quota in quotas._of.items()}
    for ask in asks if again else ():
        for quota in quotas.over(ask.app.queue.path, ask.spec.priority_class):
            again[quota.spec.name].add(ask.items, 1)
    for name, got in quotas._of.items():
        want = again[name]
        assert got.works == want.works, f"quota {name} counts {got.works} works, {want.works} are there"
        assert pruned(got.used) == pruned(want.used), f"quota {name} counts {got.used}, {want.used} is there"


def check_budgets(partition: Partition) -> None:
    """Assert that what was followed for the budgets is what is there."""
    budgets = partition.admission.budgets
    counted = budgets.counted.get(partition.name)
    if counted is None:
        return
    anew = budgets._count(partition)
    assert counted.works == anew.works, f"budgets count {counted.works}, there is {anew.works}"
    assert counted.expected == anew.expected, f"budgets expect {counted.expected}, there are {anew.expected}"
    assert counted.healthy == anew.healthy, f"healthy for budgets are {counted.healthy}, there are {anew.healthy}"
    if counted.coming_version == partition.held_asks.version:
        coming = budgets._coming(partition)
        assert counted.coming == coming, f"budgets await {counted.coming}, to come are {coming}"


def check_windows(partition: Partition) -> None:
    """Assert that what waits is narrowed as it has to be, and that the next change has a timer."""
    windows = partition.admission.windows
    timer_ms = partition.timers.due_ms(partition.name, "", TIMER)
    for app in partition.applications.values():
        for ask in app.asks.values() if windows._specs else ():
            if ask.pending:
                assert ask.where == windows.where(partition, ask), f"{ask} is narrowed by other windows"
                due_ms = windows.changes_ms(ask, partition.now_ms)
                assert due_ms is None or (timer_ms or due_ms + 1) <= due_ms, f"{ask} reaches a window unnoticed"
    due_ms = windows.next_ms(partition.now_ms)
    assert due_ms is None or (timer_ms or due_ms + 1) <= due_ms, "a window begins or ends unnoticed"


def check_held_asks(held_asks: HeldAsks, now_ms: int = 0) -> None:
    """Assert that the lists of what waits for what, and for which time, are those of the conditions."""
    wanted = {
        (each.application, (app, held.spec.key))
        for app, held in held_asks
        for each in held.conditions.after
        if not each.never
    }
    found = {(awaited, name) for awaited, names in held_asks._awaiting.items() for name in names}
    assert found == wanted, f"held asks are known to wait for {found}, they wait for {wanted}"
    known = {(app, *time) for app, times in held_asks._due.items() for time in times}
    times = {(app, due_ms, held.spec.key) for app, held in held_asks if (due_ms := held.conditions.due_ms())}
    came = {each for each in times - known if each[1] > now_ms}
    assert not came, f"held asks wait for times that nobody looks at: {came}"
