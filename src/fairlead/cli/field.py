"""One field of a job's description: its option, its name in a file, and what is sent for it.

Decides how a field is said. Never knows which fields there are (`jobfields` does). Invariant: an option and a field of
the same name mean the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

_F = TypeVar("_F", bound=Callable[..., Any])


class Field(msgspec.Struct, frozen=True):
    """One field of a job's description."""

    name: str
    """In a file."""
    flag: str = ""
    """The option; empty: it has none."""
    metavar: str | None = None
    help: str = ""
    meaning: str = ""
    """The function of `values` that says what is sent for a value; empty: it means something beside others."""
    sent_as: str = ""
    """The name in what is sent, where it is another one."""
    pair: str = ""
    """An example of NAME=VALUE, where the option takes such pairs."""
    absent: str = ""
    """What holds for a new job where it is not given; empty: `help` says it, or there is nothing to say."""
    settings: dict[str, Any] = {}
    """What else `click.option` takes."""

    @property
    def many(self) -> bool:
        """Whether the option may be repeated."""
        return bool(self.pair) or self.name == "ports"

    def option(self, function: _F, *, new: bool) -> _F:
        """Add the option to a command for `new` jobs, or for a change; its value arrives under the name in files."""
        text = f"{self.help.removesuffix('.')}; {self.absent} if not given." if new and self.absent else self.help
        said = {"metavar": self.metavar, "help": text, "multiple": self.many} | self.settings
        return click.option(*self.flag.split(), self.name, **said)(function)

    def given(self, value: Any) -> Any:
        """The value in a file that says the same as this value of the option. Raises `Failure` (usage)."""
        if not self.pair:
            return value
        from fairlead.cli.environment import passed_on
        from fairlead.cli.values import parse_pairs

        return parse_pairs(passed_on(value) if self.name == "env" else value, self.flag.split()[0], self.pair)
