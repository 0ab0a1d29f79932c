"""The naive scheduler with constraints: for every node it goes through all that runs, by the words of the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reference.naive import Application, Ask, NaiveScheduler, Node

from fairlead.core.model import events
from fairlead.core.model.constraints import Constraints, Requirement, Taint, Toleration
from fairlead.core.model.specs import AskSpec

Labels = dict[str, str]
Running = tuple[AskSpec, str]
"""What runs, and the node."""


def meets(labels: Labels, conditions: tuple[Requirement, ...]) -> bool:
    """Kubernetes' operators, one by one."""
    for condition in conditions:
        there, value = condition.key in labels, labels.get(condition.key, "")
        ok = {
            "In": there and value in condition.values,
            "NotIn": not (there and value in condition.values),
            "Exists": there,
            "DoesNotExist": not there,
            "Gt": there and value.isdecimal() and int(value) > int((*condition.values, "0")[0] or 0),
            "Lt": there and value.isdecimal() and int(value) < int((*condition.values, "0")[0] or 0),
        }
        if not ok[condition.operator]:
            return False
    return True


def puts_up_with(toleration: Toleration, taint: Taint) -> bool:
    """One toleration against one taint."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return (toleration.key, toleration.value) == (taint.key, taint.value)


class ConstrainedScheduler(NaiveScheduler):
    """It remembers what was said about asks and nodes, and nothing else."""

    def suits(self, app: Application, ask: Ask, node: Node) -> bool:
        spec = self.specs[app.id, ask.key]
        where, mine = spec.where, dict(spec.labels)
        return (
            self.is_named(where, node)
            and self.is_tolerated(where, node)
            and not any(
                theirs == node.id and self.collide(port, other)
                for running, theirs in self.running()
                for port in where.ports
                for other in running.where.ports
            )
            and self.is_drawn(where, mine, node)
            and not any(
                meets(dict(running.labels), term.selector) and self.together(term.topology_key, theirs, node.id)
                for running, theirs in self.running()
                for term in where.anti_affinity
            )
            and not any(
                meets(mine, term.selector) and self.together(term.topology_key, theirs, node.id)
                for running, theirs in self.running()
                for term in running.where.anti_affinity
            )
            and self.is_spread(where, mine, node)
        )

    def preferred(self, app: Application, ask: Ask, nodes: list[Node]) -> Node:
        """By points with the weight of each kind: attributes and taints in hundredths of the most that a node at hand
        has, company and spread 100 for the best of them and 0 for the worst.
        """
        spec = self.specs[app.id, ask.key]
        where = spec.where
        points = dict.fromkeys((node.id for node in nodes), 0)
        for weight, measure in ((-3, self.taints_left_alone), (2, self.liked)):
            found = {node.id: measure(where, node) for node in nodes}
            for node in nodes:
                points[node.id] += weight * (found[node.id] * 100 // (max(found.values()) or 1))
        for weight, measure in ((2, self.company_of(spec)), (2, self.emptiness)):
            liked = {node.id: measure(where, node) for node in nodes}
            low, high = min(liked.values()), max(liked.values())
            for node in nodes:
                points[node.id] += weight * ((liked[node.id] - low) * 100 // (high - low) if high > low else 0)
        for node in nodes:
            points[node.id] += self.of_images(spec, node)
        return max(nodes, key=lambda node: points[node.id])

    def of_images(self, spec: AskSpec, node: Node) -> int:
        """Each image by its size and the part of all nodes that have it; all of them between two bounds."""
        if not spec.images:
            return 0
        mib, total = 1024 * 1024, 0
        for name in spec.images:
            holders = [n for n in self.nodes if name in self.images.get(n, {})]
            if node.id in holders:
                total += self.images[node.id][name] * len(holders) // len(self.nodes)
        most = 1000 * mib * len(spec.images)
        return 100 * (max(min(total, most), 23 * mib) - 23 * mib) // (most - 23 * mib)

    def taints_left_alone(self, where: Constraints, node: Node) -> int:
        soft = [taint for taint in self.taints[node.id] if taint.effect == "PreferNoSchedule"]
        return sum(not any(puts_up_with(t, taint) for t in where.tolerations) for taint in soft)

    def liked(self, where: Constraints, node: Node) -> int:
        return sum(w.weight for w in where.preferred_nodes if meets(self.labels_of(node.id), w.term))

    def near(self, selector: tuple[Requirement, ...], key: str, node: Node) -> int:
        return sum(
            meets(dict(running.labels), selector) and self.together(key, theirs, node.id)
            for running, theirs in self.running()
        )

    def company_of(self, spec: AskSpec) -> Callable[[Constraints, Node], int]:
        """What it likes of those near a node, and what those like of it: required affinity counts 1."""

        def company(where: Constraints, node: Node) -> int:
            found = sum(w.weight * self.near(w.term.selector, w.term.topology_key, node) for w in where.preferred_work)
            for running, theirs in self.running():
                wishes = [(1, term) for term in running.where.affinity]
                wishes += [(wish.weight, wish.term) for wish in running.where.preferred_work]
                for weight, term in wishes:
                    if meets(dict(spec.labels), term.selector) and self.together(term.topology_key, theirs, node.id):
                        found += weight
            return found

        return company

    def emptiness(self, where: Constraints, node: Node) -> int:
        """The fewer there are the better; without one of the keys it is worse than the worst."""
        crowds = {
            n.id: sum(self.near(term.selector, term.topology_key, n) for term in where.preferred_spread)
            for n in self.nodes.values()
        }
        if any(term.topology_key not in self.labels_of(node.id) for term in where.preferred_spread):
            return -max(crowds.values()) - 1
        return -crowds[node.id]

    def is_named(self, where: Constraints, node: Node) -> bool:
        here = self.labels_of(node.id)
        if not meets(here, where.selector):
            return False
        return not where.node_terms or any(meets(here, term) for term in where.node_terms)

    def is_tolerated(self, where: Constraints, node: Node) -> bool:
        return all(
            taint.effect == "PreferNoSchedule" or any(puts_up_with(t, taint) for t in where.tolerations)
            for taint in self.taints[node.id]
        )

    def is_drawn(self, where: Constraints, mine: Labels, node: Node) -> bool:
        """With work that matches all terms; the first of a group that matches itself may go where the keys are."""
        keys = [term.topology_key for term in where.affinity]
        if any(key not in self.labels_of(node.id) for key in keys):
            return False

        def wanted(labels: Labels) -> bool:
            return all(meets(labels, term.selector) for term in where.affinity)

        near = [theirs for running, theirs in self.running() if wanted(dict(running.labels))]
        if all(any(self.together(key, theirs, node.id) for theirs in near) for key in keys):
            return True
        return wanted(mine) and not any(key in self.labels_of(theirs) for theirs in near for key in keys)

    def is_spread(self, where: Constraints, mine: Labels, node: Node) -> bool:
        """No domain gets ahead of the emptiest by more than the skew; nodes count that have all keys, and are named and
        tolerated where the term says so.
        """
        keys = [term.topology_key for term in where.spread]
        if any(key not in self.labels_of(node.id) for key in keys):
            return False
        for term in where.spread:
            counting = [
                n.id
                for n in self.nodes.values()
                if (self.is_named(where, n) or not term.only_selected)
                and (self.is_tolerated(where, n) or not term.only_tolerated)
                and all(key in self.labels_of(n.id) for key in keys)
            ]
            count = {self.labels_of(n)[term.topology_key]: 0 for n in counting}
            for running, theirs in self.running():
                if theirs in counting and meets(dict(running.labels), term.selector):
                    count[self.labels_of(theirs)[term.topology_key]] += 1
            fewest = 0 if len(count) < term.min_domains else min(count.values(), default=0)
            here = count.get(self.labels_of(node.id)[term.topology_key], 0) + meets(mine, term.selector)
            if here - fewest > term.max_skew:
                return False
        return True

    def collide(self, mine: str, theirs: str) -> bool:
        (protocol, address, port), (protocol2, address2, port2) = mine.split("/"), theirs.split("/")
        if (protocol, port) != (protocol2, port2):
            return False
        return address == address2 or "0.0.0.0" in (address, address2)

    def together(self, key: str, one: str, other: str) -> bool:
        here, there = self.labels_of(one), self.labels_of(other)
        return key in here and key in there and here[key] == there[key]

    def labels_of(self, node: str) -> Labels:
        return {**self.attributes[node], "kubernetes.io/hostname": node}

    def running(self) -> Iterator[Running]:
        for app in self.applications.values():
            for ask in app.asks.values():
                if ask.node:
                    yield self.specs[app.id, ask.key], ask.node
        for node in self.nodes.values():
            yield from ((self.specs["", key], node.id) for key in node.foreign)

    # -- events --

    def handle(self, event: events.Event, now_ms: int) -> None:
        if isinstance(event, events.AddAsks):
            for spec in event.asks:
                self.specs.setdefault((spec.application, spec.key), spec)
        super().handle(event, now_ms)

    def AddNode(self, event: events.AddNode) -> None:
        super().AddNode(event)
        self.images.pop(event.node.id, None)
        self.attributes[event.node.id], self.taints[event.node.id] = dict(event.node.attributes), event.node.taints

    def LabelNode(self, event: events.LabelNode) -> None:
        if event.id in self.nodes:
            self.attributes[event.id], self.taints[event.id] = dict(event.attributes), event.taints

    def ReportImages(self, event: events.ReportImages) -> None:
        self.images[event.id] = dict(event.images)

    @property
    def images(self) -> dict[str, dict[str, int]]:
        return self.__dict__.setdefault("_images", {})

    @property
    def specs(self) -> dict[tuple[str, str], AskSpec]:
        return self.__dict__.setdefault("_specs", {})

    @property
    def attributes(self) -> dict[str, Labels]:
        return self.__dict__.setdefault("_attributes", {})

    @property
    def taints(self) -> dict[str, tuple[Taint, ...]]:
        return self.__dict__.setdefault("_taints", {})
