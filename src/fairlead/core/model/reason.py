"""The shape that every reason has: a code, its numbers, and one plain sentence.

Decides nothing: the reasons themselves are in `fairlead.core.model.reasons`. Invariant: what a program reads is in the
fields, and `code`, the name of the class in lower case, names the type for good.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from fairlead.core.model.quantities import format_amounts


@dataclass(frozen=True, slots=True)
class Reason:
    """Why not (yet)."""

    code: ClassVar[str] = "reason"
    template: ClassVar[str] = ""
    """The sentence, with fields in braces: amounts for people (what is needed rounded up), names with commas."""

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"\B(?=[A-Z])", "-", cls.__name__).lower()

    def sentence(self) -> str:
        """One plain sentence with the numbers."""
        return self._sentence()

    def _sentence(self) -> str:
        return self.template.format_map({f.name: _in_words(f.name, getattr(self, f.name)) for f in fields(self)})

    def as_dict(self) -> dict[str, Any]:
        """`{"code": …, "sentence": …, <fields>}`, ready for JSON."""
        shown: dict[str, Any] = {"code": self.code, "sentence": self.sentence()}
        for f in fields(self):
            value = getattr(self, f.name)
            shown[f.name] = (
                dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value
            )
        return shown


def _in_words(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return format_amounts(value, up=name == "needed")
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def short(name: str) -> str:
    """`application/key` for people: the key alone where both are the same, or where it begins with the application."""
    application, _, key = name.partition("/")
    return key if key == application or key.startswith((f"{application}/", f"{application}#")) else name


def amounts_of(amounts: Mapping[str, int], names: list[str], *, up: bool = False) -> str:
    """The amounts of these resources alone: a sentence names what is short and nothing else."""
    return format_amounts({name: amounts.get(name, 0) for name in names}, up=up)


def short_of(needed: Mapping[str, int], left: Mapping[str, int]) -> list[str]:
    """The resources of which less is left than needed; all of them where none is."""
    return [name for name in needed if needed[name] > left.get(name, 0)] or list(needed)
