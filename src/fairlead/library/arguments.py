"""Arguments that look right and mean something else: told at once, before anything is taken in.

Decides which of them are refused, and with which words. Never what a request does.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral

from fairlead.core.model.resources import Resources


def check_amounts(every: Iterable[object]) -> None:
    """TypeError for what is no `Resources` of whole numbers.

    Half a core is 500: 0.5 would be taken for half a thousandth, and next to nothing would be counted.
    """
    for each in every:
        if not isinstance(each, Resources):
            raise TypeError(f"{each!r}: amounts are Resources, such as fairlead.Resources({{'vcore': 1000}})")
        amounts: Iterable[tuple[str, object]] = each
        for name, amount in amounts:
            if not isinstance(amount, Integral):
                raise TypeError(f"{name} {amount!r}: amounts are whole numbers; vcore counts in thousandths of a core")


def ids(given: Iterable[str]) -> tuple[str, ...]:
    """The ids. TypeError for one by itself: each of its letters would be taken for one."""
    if isinstance(given, str):
        raise TypeError(f"{given!r}: give a list of ids, such as [{given!r}]")
    return tuple(given)
