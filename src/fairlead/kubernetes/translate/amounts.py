"""Amounts: what the quantities of Kubernetes mean, and what a pod needs on a node.

Decides that a pod needs the sum of its containers, or what its largest step of starting up needs if that is more, plus
its overhead, plus one `pods`. While a container or pod is resized in place, the most of what it asks for, was granted,
and runs with counts; of a resize that its node can never grant, what was granted and runs. Never rounds down: a
fraction of a unit counts as a whole one. Names are YuniKorn's: `cpu` is `vcore` in thousandths, `memory` is in bytes,
all others are what they are called, in units.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

from fairlead.core.model.resources import INT64_MAX, Book, Items, Resources
from fairlead.kubernetes.objects import Amounts, Container, ContainerStatus, Pod, PodStatus

PODS = "pods"
RESIZE_PENDING, INFEASIBLE = "PodResizePending", "Infeasible"
"""A condition of a pod that is resized, and its reason when the node will never grant that."""
_NAMES = {"cpu": "vcore"}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E))?", re.ASCII)
_SUFFIXES: Mapping[str | None, Fraction] = {
    None: Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
LONGEST = 64
KEPT = 4_096
"""Quantities, and sizes of pods, that are remembered: a cluster has far fewer different ones than pods."""


class AmountError(ValueError):
    """A text that is no quantity; the sentence names the resource and the text."""


def quantity(name: str, value: str | float) -> int:
    """A quantity of Kubernetes as a whole number of the core's unit, rounded up, at most 2^63 - 1.

    `name` is Kubernetes' name: `cpu` comes out in thousandths, all others in units. Raises `AmountError`.
    """
    return _quantity(name, str(value))


@lru_cache(maxsize=KEPT)
def _quantity(name: str, value: str) -> int:
    amount = exact(value, name)
    if name == "cpu":
        amount *= 1000
    whole = -(-amount.numerator // amount.denominator)
    return min(whole, INT64_MAX)


def exact(value: str | float, name: str = "anything") -> Fraction:
    """A quantity of Kubernetes as it is; `name` is for the sentence of the `AmountError`."""
    text = str(value).strip()
    found = _QUANTITY.fullmatch(text) if len(text) <= LONGEST else None
    if found is None:
        raise AmountError(f"{text!r} is no quantity of {name}: write a number with a suffix such as 500m, 2 or 10Gi")
    number, exponent, suffix = found.groups()
    if exponent is not None and abs(int(exponent[1:])) > LONGEST:
        raise AmountError(f"{text!r} is no quantity of {name}: its exponent is out of range")
    return Fraction(number + (exponent or "")) * _SUFFIXES[suffix]


def amounts(given: Amounts) -> Book:
    """A map of quantities under the core's names; what cannot be negative, is not. Raises `AmountError`."""
    return {_NAMES.get(name, name): max(quantity(name, value), 0) for name, value in (given or {}).items()}


def resources(given: Amounts) -> Resources:
    """A map of quantities as an amount. Raises `AmountError`."""
    return Resources(amounts(given))


def pod_needs(pod: Pod) -> Resources:
    """What a pod needs on a node while it starts and runs. Raises `AmountError`.

    Containers that stay (also those started before the others and kept, the sidecars) add up. An init container needs
    its own amount beside the sidecars that were started before it. The larger of both counts, for each resource.
    What it has by claims comes on top. Requests of the pod as a whole stand in for that sum. A request that is missing
    is the limit, as the API server fills in itself.
    """
    spec, status = pod.spec, pod.status
    refused = any(c.type == RESIZE_PENDING and c.reason == INFEASIBLE for c in status.conditions or ())
    has = {s.name: s for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    running = _sum(_needs(c, has.get(c.name), refused) for c in spec.containers or ())
    sidecars: Book = {}
    largest: Book = {}
    for container in spec.init_containers or ():
        stays = container.restart_policy == "Always"
        needs = _needs(container, has.get(container.name) if stays else None, refused)
        if stays:
            _add(running, needs)
            _add(sidecars, needs)
            step = sidecars
        else:
            step = _sum((sidecars, needs))
        _raise_to(largest, step)
    _raise_to(running, largest)
    for claimed in status.node_allocatable_resource_claim_statuses or ():
        _add(running, amounts(claimed.resources))
    whole = spec.resources
    if whole is not None:
        asked = amounts(whole.limits if whole.requests is None else whole.requests)
        needs = _most(asked, status, refused)
        running.update({name: needs.get(name, 0) for name in asked})
    _add(running, amounts(spec.overhead))
    running[PODS] = running.get(PODS, 0) + 1
    return _alike(tuple(sorted(running.items())))


@lru_cache(maxsize=KEPT)
def _alike(items: Items) -> Resources:
    """Pods of one size share it: with 50,000 of them that is 40 MiB."""
    return Resources(items)


def _needs(container: Container, has: ContainerStatus | None, refused: bool) -> Book:
    given = container.resources
    asked = {**amounts(given.limits), **amounts(given.requests)} if given is not None else {}
    return _most(asked, has, refused)


def _most(asked: Book, has: ContainerStatus | PodStatus | None, refused: bool) -> Book:
    """Of what is asked for, was granted, and is in use; `refused`: what is asked for will never be granted."""
    if has is None or has.resources is None:
        return asked
    needs = amounts(has.resources.requests)
    _raise_to(needs, amounts(has.allocated_resources))
    if not refused:
        _raise_to(needs, asked)
    return needs


def _sum(parts: Iterable[Mapping[str, int]]) -> Book:
    total: Book = {}
    for part in parts:
        _add(total, part)
    return total


def _add(book: Book, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        book[name] = book.get(name, 0) + amount


def _raise_to(book: Book, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        if amount > book.get(name, 0):
            book[name] = amount
