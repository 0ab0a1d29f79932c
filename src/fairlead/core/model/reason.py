"""The shape that every reason has: a code, its numbers, and one plain sentence.

Decides nothing: the reasons themselves are in `fairlead.core.model.reasons`. Invariant: what a program reads is in the
fields, and `code` names the type for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Reason:
    """Why not (yet)."""

    code: ClassVar[str] = "unknown"

    def sentence(self) -> str:
        """One plain sentence with the numbers."""
        raise NotImplementedError

    def as_dict(self) -> dict[str, Any]:
        """`{"code": …, "sentence": …, <fields>}`, ready for JSON."""
        shown: dict[str, Any] = {"code": self.code, "sentence": self.sentence()}
        for f in fields(self):
            value = getattr(self, f.name)
            shown[f.name] = (
                dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value
            )
        return shown


def short(name: str) -> str:
    """`application/key` for people: the key alone where both are the same, or where it begins with the application."""
    application, _, key = name.partition("/")
    return key if key == application or key.startswith((f"{application}/", f"{application}#")) else name
