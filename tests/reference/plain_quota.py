"""Quotas that are enforced: a queue whose maximum was lowered gives back what it has too much, some time later.

Written from the rules in the plainest way, as a base for the simulator of `plain_guarantee`.
"""

from __future__ import annotations

from collections.abc import Iterator

from reference.plain_daemons import Daemons, reluctance
from reference.plain_line import NEVER, Amount, Work
from reference.plain_simulator import Order

ROUND_MS = 1_000


class Quotas(Daemons):
    """Queues with clocks."""

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)
        self.clocks: dict[str, int] = {}
        """When a queue gives back what it has too much."""
        self.round_ms = NEVER
        """When the clocks are looked at next."""

    def _looks(self) -> list[int]:
        return [*super()._looks(), *([self.round_ms] if self.now_ms < self.round_ms < NEVER else [])]

    def _quota_ms(self, path: str) -> int:
        said = self._said(path, "quota_ms")
        return said if isinstance(said, int) else 0

    # -- the clocks ---------------------------------------------------------------------------------------------------

    def _obeys(self, order: Order) -> None:
        before = {path: (queue.most, self._quota_ms(path)) for path, queue in self.queues.items()}
        super()._obeys(order)
        if order.queues is None:
            return
        for path, (old_most, old_ms) in before.items():
            delay_ms = self._quota_ms(path)
            if not delay_ms or not self._is_over(path):
                self.clocks.pop(path, None)
            elif path in self.clocks and old_ms:
                self.clocks[path] += delay_ms - old_ms
            elif not old_ms or self._is_lower(path, old_most):
                self.clocks[path] = self.now_ms + delay_ms
        self._sets_round(self.now_ms)

    def _is_lower(self, path: str, old: Amount | None) -> bool:
        return any(name not in (old or {}) or most < (old or {})[name] for name, most in self._most(path).items())

    def _is_over(self, path: str) -> bool:
        return path != "root" and any(self._used(path, name) > most for name, most in self._most(path).items())

    def _sets_round(self, not_before_ms: int) -> None:
        if self.clocks:
            self.round_ms = max(min(self.clocks.values()), not_before_ms)

    def _expires(self) -> None:
        super()._expires()
        if self.round_ms <= self.now_ms:
            self.round_ms, self.changed = NEVER, next(self.numbers)
            self._round("root")
            self._sets_round(self.now_ms + ROUND_MS)

    def _round(self, path: str) -> None:
        """From the root down; what is below one that gives back waits for the next round."""
        if path in self.clocks and not self._is_over(path):
            del self.clocks[path]
        if self.clocks.get(path, NEVER) <= self.now_ms:
            del self.clocks[path]
            self._gives_up(path)
            return
        for child in self._below_of(path):
            self._round(child)

    def _below_of(self, path: str) -> list[str]:
        return [each for each in self.queues if each.rpartition(".")[0] == path]

    # -- what it gives back -------------------------------------------------------------------------------------------

    def _gives_up(self, path: str) -> None:
        """Each leaf its part; then what is too much still is asked of each as a whole."""
        for leaf, part in list(self._parts(path, self._excess(path))):
            self._stops_of(leaf, path, part)
        for leaf in self._leaves_of(path):
            if over := self._excess(path):
                self._stops_of(leaf, path, over)

    def _excess(self, path: str) -> Amount:
        over = {name: self._used(path, name, leaving=False) - most for name, most in self._most(path).items()}
        return {name: value for name, value in over.items() if value > 0}

    def _leaves_of(self, path: str) -> Iterator[str]:
        below = self._below_of(path)
        if not below:
            yield path
        for child in below:
            yield from self._leaves_of(child)

    def _parts(self, path: str, over: Amount) -> Iterator[tuple[str, Amount]]:
        """In proportion to what each has above its guarantee, in whole numbers."""
        below = self._below_of(path)
        if not below and over:
            yield path, over
        parts: dict[str, Amount] = {child: {} for child in below}
        for name, whole in over.items():
            weights = {child: weight for child in below if (weight := self._weight(child, name)) > 0}
            total = sum(weights.values())
            shares = {child: weight * whole // total for child, weight in weights.items()}
            left = whole - sum(shares.values()) if shares else 0
            for child in sorted(shares, key=lambda each: -(weights[each] * whole % total))[:left]:
                shares[child] += 1
            for child, part in shares.items():
                parts[child] |= {name: part} if part else {}
        for child in below:
            yield from self._parts(child, parts[child])

    def _weight(self, path: str, name: str) -> int:
        due = self._said_of(path).due or {}
        used = {each: self._used(path, each, leaving=False) for each in {name, *due}}
        above = {each: max(used[each] - value, 0) for each, value in due.items() if used[each] > 0}
        if name in above:
            return above[name]
        # Of what it does not name as much as may go of all that it names.
        return min((used[name] * more // used[each] for each, more in above.items()), default=used[name])

    def _stops_of(self, leaf: str, path: str, part: Amount) -> None:
        """Work of a leaf until it has given its part; none that is larger, gives nothing, or is guaranteed."""
        of_leaf = [w for w in self.running if w.gang.job.queue == leaf and not (w.leaving or w.takes_over)]
        found = [w for w in of_leaf if not w.task.required and all(v <= part.get(n, v) for n, v in w.task.amount)]
        short = dict(part)
        for work in sorted(found, key=reluctance):
            if any(short.get(name, 0) > 0 for name, _ in work.task.amount) and self._may_give(work, path):
                for name, value in work.task.amount:
                    short[name] = short.get(name, 0) - value
                self._tell(work, "")

    def _may_give(self, work: Work, path: str) -> bool:
        """Whether no queue from its own up to the one that gives back falls below its guarantee."""
        for each in [p for p in self._lineage(work.gang.job.queue) if self._is_at_or_below(p, path)]:
            due = self._said_of(each).due or {}
            left = {n: self._used(each, n, leaving=False) - v for n, v in work.task.amount if n in due}
            if any(left[name] < due[name] for name in left):
                return False
        return True

    def _is_at_or_below(self, path: str, top: str) -> bool:
        return f"{path}.".startswith(f"{top}.")
