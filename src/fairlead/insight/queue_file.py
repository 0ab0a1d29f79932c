"""The queue file as a change would leave it: whether the checks take it, and the difference to the one in force.

Decides how a part of a change is written into the text that somebody wrote, comments and all. Never applies anything.
Invariant: a difference is only given where the new text, read as any queue file is, says exactly what was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.config import ConfigurationError, edit, errors_of, load_text
from fairlead.config.tree import PlacedQueue, places_of
from fairlead.config.yamltree import YamlError
from fairlead.core.model.quantities import format_quantity
from fairlead.insight.parts import IN_THE_FILE, Part, What

if TYPE_CHECKING:
    from fairlead.core.model.specs import ClusterSpec

_AMOUNTS = {What.QUEUE_MAX: "max", What.GUARANTEED: "guaranteed"}


def is_refused(now: ClusterSpec, new: ClusterSpec) -> bool:
    """Whether the checks of queue files find an error in the new one that is not in the one in force."""
    known = {problem.path for problem in errors_of(now)}
    return any(problem.path not in known for problem in errors_of(new))


def difference(now: ClusterSpec, new: ClusterSpec, partition: str, parts: Sequence[Part]) -> str:
    """What these parts change in the text of the file in force, as `diff -u` writes it.

    Empty where they change nothing there, where there is no text, or where it has to be edited by hand (an anchor that
    is used twice).
    """
    in_file = [part for part in parts if part.what in IN_THE_FILE]
    if not in_file or not now.text:
        return ""
    text = now.text
    try:
        for part in in_file:
            text = _edited(text, now, partition, part)
        read = load_text(text)
    except (KeyError, YamlError, ConfigurationError):
        return ""
    return edit.difference(now.text, text) if read.partitions == new.partitions else ""


def _edited(text: str, now: ClusterSpec, partition: str, part: Part) -> str:
    """The text with one part in it; the places are those of the file in force, which edits of values leave."""
    placed = next(each for each in places_of(now)[1] if each.spec.name == partition)
    queue = next(each for each in placed.root.walk() if each.full_name.lower() == part.subject.lower())
    at = edit.steps(queue.path)
    if part.what in _AMOUNTS:
        return edit.with_value(text, [*at, "resources", _AMOUNTS[part.what], part.resource], _amount(part))
    if part.what is What.QUEUE_APPLICATIONS:
        return edit.with_value(text, [*at, "maxapplications"], str(part.value))
    if part.what is What.PROPERTY:
        name, _, value = part.text.partition("=")
        if name.startswith("-"):
            return edit.without_key(text, [*at, "properties", name[1:]])
        return edit.with_value(text, [*at, "properties", name], value)
    entry = [*edit.steps(queue.limits_path), _entry(queue, part)]
    if part.what is What.LIMIT_APPLICATIONS:
        return edit.with_value(text, [*entry, "maxapplications"], str(part.value))
    return edit.with_value(text, [*entry, "maxresources", part.resource], _amount(part))


def _amount(part: Part) -> str:
    return format_quantity(part.resource, part.value)


def _entry(queue: PlacedQueue, part: Part) -> int:
    """The place of the entry of `limits` that names the user or group."""
    kind, _, name = part.who.partition(" ")
    for number, limit in enumerate(queue.spec.limits):
        if name in (limit.users if kind == "user" else limit.groups):
            return number
    raise KeyError(part.who)
