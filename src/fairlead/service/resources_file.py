"""What a machine was declared to have, kept over restarts, and what it had at the last start.

Decides which of the two counts: what is declared now, else what was declared last. Never finds out what a machine has.
Invariant: a restart without `--resource` has the resources of the start before it, or says what became different.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from fairlead.core.model.quantities import format_exactly
from fairlead.local.gpus import Gpu
from fairlead.service.whole_files import read_whole, write_whole

log = logging.getLogger("fairlead.service")


class _File(msgspec.Struct):
    declared: dict[str, int] = {}
    """`vcore` in thousandths, `memory` in bytes, others in units."""
    had: dict[str, int] = {}
    """All that the machine had at the last start."""
    node: str = ""
    """What the machine was called then."""
    gpus: dict[str, str] = {}
    """By number the GPUs that it had then: UUID and model, where they were known."""


class ResourcesFile:
    """The file of one state directory."""

    def __init__(self, path: Path) -> None:
        """Read it; one that is not there, or makes no sense, says nothing."""
        self._path = path
        try:
            self._file = msgspec.json.decode(read_whole(path), type=_File)
        except FileNotFoundError:
            self._file = _File()
        except (OSError, ValueError) as problem:
            log.warning(
                "%s cannot be read (%s); what was declared with --resource has to be declared again", path, problem
            )
            self._file = _File()

    def declared(self, given: Mapping[str, int] | None) -> dict[str, int]:
        """What counts as declared: what is `given`; if nothing is, what was last; None: nothing is any more."""
        if given is None:
            return {}
        if not given and self._file.declared:
            log.info("declared at an earlier start: %s (--resource changes it)", format_exactly(self._file.declared))
        return dict(given or self._file.declared)

    def note(
        self, declared: Mapping[str, int], has: Mapping[str, int], node: str = "", gpus: Sequence[Gpu] = ()
    ) -> list[str]:
        """Keep it all for the next start; a sentence for each thing that was otherwise at the last one."""
        last, now = self._file, dict(has)
        named = {str(each.number): f"{each.uuid} {each.model}".strip() for each in gpus if each.uuid}
        self._file = _File(dict(declared), now, node, named)
        try:
            write_whole(self._path, msgspec.json.encode(self._file))
        except OSError as problem:
            log.warning("%s cannot be written: %s", self._path, problem)
        found = [_otherwise(last.had, now), *_other_gpus(last.gpus, named)]
        if last.node and node and last.node != node:
            found.append(
                f"this machine is called {node} now and was called {last.node} at the last start; its node keeps the "
                "name that it was first registered with"
            )
        return [sentence for sentence in found if sentence]


def _otherwise(had: Mapping[str, int], now: Mapping[str, int]) -> str:
    other = sorted(name for name in {*had, *now} if had.get(name, 0) != now.get(name, 0))
    if not had or not other:
        return ""
    before, after = (format_exactly({name: each.get(name, 0) for name in other}) for each in (had, now))
    return (
        f"this machine has {after} now and had {before} at the last start; if that is not so, say what it has with "
        "--resource"
    )


def _other_gpus(had: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Devices that have another's number: how many there are is said anyway."""
    for number in sorted(had.keys() & now.keys(), key=int):
        if had[number] != now[number]:
            yield f"GPU {number} is {now[number]} now and was {had[number]} at the last start"
