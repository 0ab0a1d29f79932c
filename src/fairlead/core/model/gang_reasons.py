"""Why a gang waits though others could be whole or ended: reasons of gangs that hold each other.

Decides what can be said of it. They are part of `fairlead.core.model.reasons`, from where everybody takes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fairlead.core.model.quantities import format_amounts
from fairlead.core.model.reason import Reason


@dataclass(frozen=True, slots=True)
class GangsHoldEachOther(Reason):
    """Its gang and another one each held a part of what the other lacks; one of them gives its placeholders back."""

    code: ClassVar[str] = "gangs-hold-each-other"
    other: str
    """The application of the other gang."""
    holds: Mapping[str, int]
    """What the placeholders of its own gang hold."""
    needs: Mapping[str, int]
    """What its own gang still needs to be whole."""
    other_holds: Mapping[str, int]
    other_needs: Mapping[str, int]
    gives_way: bool
    """Whether it is its own gang that gives way."""

    def sentence(self) -> str:
        """One plain sentence."""
        needs, other_needs = _amounts(self.needs, up=True), _amounts(self.other_needs, up=True)
        both = (
            f"its gang holds {_amounts(self.holds)} and still needs {needs}, gang {self.other} holds "
            f"{_amounts(self.other_holds)} and still needs {other_needs}"
        )
        if self.gives_way:
            return f"{both}; its placeholders are given back until gang {self.other} is whole or gone"
        return f"{both}; gang {self.other} gives its placeholders back"


def _amounts(amounts: Mapping[str, int], *, up: bool = False) -> str:
    return format_amounts({name: amount for name, amount in amounts.items() if amount}, up=up)
