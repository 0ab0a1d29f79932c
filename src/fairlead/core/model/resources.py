"""Amounts and limits: what is asked for, what is there, what is allowed.

Decides how quantities of named resources are held, compared and subtracted. Never decides what gets them. Two types
that must not be mixed: in `Resources` (an amount) an absent name is 0, in `Limits` an absent name is unlimited and a
present 0 means none. Exact integers, no saturation inside; the wire clamps.

A *book* is the third form, used only inside the core for running totals: a plain `dict[str, int]` that is changed in
place. Names with value 0 may stay in a book; `pruned` drops them for the outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

Book = dict[str, int]
Items = tuple[tuple[str, int], ...]

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)


class _Named:
    """Named amounts that do not change, sorted by name: equal ones are equal tuples, and iteration has one order."""

    __slots__ = ("items",)

    items: Items

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def __eq__(self, other: object) -> bool:
        return self.items == other.items if isinstance(other, self.__class__) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.items)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({dict(self.items)})"

    def __reduce__(self) -> tuple[type[_Named], tuple[Items]]:
        return (self.__class__, (self.items,))

    def as_dict(self) -> dict[str, int]:
        """A fresh `{name: amount}`, sorted by name; a limit of 0 is there, an amount of 0 is not."""
        return dict(self.items)


class Resources(_Named):
    """An immutable amount of named resources; an absent name is 0, and zeros are not kept."""

    __slots__ = ()

    def __init__(self, amounts: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        pairs = amounts.items() if isinstance(amounts, Mapping) else amounts
        self.items = tuple(sorted((n, v) for n, v in pairs if v))

    def __getitem__(self, name: str) -> int:
        return dict(self.items).get(name, 0)

    def __add__(self, other: Resources) -> Resources:
        total = dict(self.items)
        for n, v in other.items:
            total[n] = total.get(n, 0) + v
        return Resources(total)

    def __mul__(self, factor: int) -> Resources:
        return Resources((n, v * factor) for n, v in self.items)


NOTHING = Resources()


class Limits(_Named):
    """An immutable ceiling or guarantee; an absent name is unlimited, a present 0 means none."""

    __slots__ = ()

    def __init__(self, amounts: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        self.items = tuple(sorted(dict(amounts).items()))

    def get(self, name: str) -> int | None:
        """The limit for `name`, or None where it is unlimited."""
        return dict(self.items).get(name)

    @property
    def is_set(self) -> bool:
        """Whether it limits anything: at least one positive value and none negative.

        A map that is empty or all zero counts as not set (YuniKorn: "a max or guaranteed map that is all zero or empty
        is treated as not set"); a zero beside a positive value is a real "none allowed".
        """
        return any(v > 0 for _, v in self.items) and all(v >= 0 for _, v in self.items)

    def min_with(self, other: Limits) -> Limits:
        """The tighter of both for each name; a name on one side only takes that side's value."""
        merged = dict(self.items)
        for n, v in other.items:
            merged[n] = min(v, merged.get(n, v))
        return Limits(merged)


UNLIMITED = Limits()


def add_to(book: Book, items: Items) -> None:
    """Add an amount to a running total, in place."""
    for n, v in items:
        book[n] = book.get(n, 0) + v


def take_from(book: Book, items: Items) -> None:
    """Subtract an amount from a running total, in place; zeros are dropped."""
    for n, v in items:
        left = book.get(n, 0) - v
        if left:
            book[n] = left
        else:
            book.pop(n, None)


def lacks(most: Mapping[str, int] | None, used: Mapping[str, int], items: Items) -> bool:
    """Whether a maximum has no room for this amount beside what is used; what it does not name is unlimited."""
    if most is not None:
        for n, v in items:
            if v > 0 and n in most and used.get(n, 0) + v > most[n]:
                return True
    return False


def amount_flaw(amounts: Resources) -> str:
    """What is wrong with an amount from outside; nothing when it makes sense."""
    for name, amount in amounts.items:
        if not name:
            return "a resource has no name"
        if amount < 0:
            return f"{name} is negative ({amount})"
        if amount > INT64_MAX:
            return f"{name} is larger than {INT64_MAX}"
    return ""


def negative(items: Items) -> Items:
    """The same amounts below zero: to take away what `add_to` adds."""
    return tuple((name, -amount) for name, amount in items)


def pruned(book: Mapping[str, int]) -> dict[str, int]:
    """A copy sorted by name without the zeros: how totals are shown."""
    return {n: book[n] for n in sorted(book) if book[n]}


def fits_in(items: Items, room: Mapping[str, int]) -> bool:
    """Whether an amount fits into what is free; a name that is not there is 0 (`FitIn` of YuniKorn)."""
    for n, v in items:
        if v > room.get(n, 0) and v > 0:
            return False
    return True
