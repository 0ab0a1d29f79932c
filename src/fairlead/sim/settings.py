"""Settings of a queue file that are tried: which values each may have, and the file with some of them chosen.

Decides how `root.batch max.vcore=16..32/4` is read, and where in the text a value goes. Never judges a file (`config`
does). Invariant: what is not tried keeps every character; a choice gives the same text in whichever order it is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from fairlead.config import ConfigurationError, check_text, edit, load_text
from fairlead.config.tree import PlacedQueue, places_of
from fairlead.config.yamltree import YamlError
from fairlead.core.model.specs import DEFAULT_PARTITION

STEPS = 8
"""Values of a range that does not say its step."""
VALUES_MAX = 100
_NUMBER = re.compile(r"(-?\d+)([A-Za-z]*)")
_RESOURCES = ("max", "guaranteed")


class SettingError(ValueError):
    """A setting that makes no sense."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value in the file."""

    queue: str
    key: str
    """`max.NAME`, `guaranteed.NAME`, `maxapplications`, or a property."""
    values: tuple[str, ...]
    """In the order in which they were given: neighbours are alike."""

    @property
    def name(self) -> str:
        """As it is typed."""
        return f"{self.queue} {self.key}"

    @property
    def resource(self) -> str:
        """Of which resource it is an amount; empty: of none."""
        kind, _, resource = self.key.partition(".")
        return resource if kind in _RESOURCES else ""


Choice = Mapping[Setting, str]


def read_setting(text: str) -> Setting:
    """`QUEUE KEY=VALUE,VALUE` or `QUEUE KEY=LOW..HIGH/STEP`. Raises `SettingError`."""
    about, equals, listed = text.partition("=")
    words = about.split()
    if not equals or len(words) != 2 or not listed.strip():
        raise SettingError(f"{text!r}: write QUEUE KEY=VALUES, such as 'root.batch max.vcore=16..32/4'")
    values = tuple(value for part in listed.split(",") for value in _values(part.strip(), text))
    if len(set(values)) < 2 or len(values) > VALUES_MAX:
        raise SettingError(f"{text!r}: has {len(values)} values; two to {VALUES_MAX} can be tried")
    return Setting(words[0], words[1], tuple(dict.fromkeys(values)))


def _values(part: str, text: str) -> Sequence[str]:
    low, dots, rest = part.partition("..")
    if not dots:
        return [part]
    high, slash, step = rest.partition("/")
    ends = [_NUMBER.fullmatch(end.strip()) for end in (low, high, *([step] if slash else []))]
    found = [match for match in ends if match is not None]
    if len(found) < len(ends) or len({match[2] for match in found}) > 1:
        raise SettingError(f"{text!r}: a range has whole numbers with one unit, such as 16..32/4 or 64Gi..256Gi/64Gi")
    first, last = int(found[0][1]), int(found[1][1])
    by = int(found[2][1]) if slash else max(-(-(last - first) // (STEPS - 1)), 1)
    if last <= first or by < 1:
        raise SettingError(f"{text!r}: a range goes from the smaller to the larger value")
    if (last - first) // by >= VALUES_MAX:
        # Not counted one by one: there may be more than any memory holds.
        raise SettingError(f"{text!r}: has {(last - first) // by + 1:,} values; two to {VALUES_MAX} can be tried")
    return [f"{number}{found[0][2]}" for number in dict.fromkeys((*range(first, last, by), last))]


def chosen(text: str, choice: Choice) -> str:
    """The queue file with these values. Raises `SettingError` where it has no such queue or cannot be edited."""
    for setting in sorted(choice, key=lambda each: each.name):
        text = _with(text, setting, choice[setting])
    return text


def _with(text: str, setting: Setting, value: str) -> str:
    queues = {queue.full_name.lower(): queue for queue in _queues(text)}
    found = queues.get(setting.queue.lower())
    if found is None:
        raise SettingError(f"{setting.name}: the file has no queue {setting.queue}; it has {', '.join(queues)}")
    at = edit.steps(found.path)
    if setting.resource:
        path = [*at, "resources", *setting.key.split(".", 1)]
    else:
        path = [*at, setting.key] if setting.key == "maxapplications" else [*at, "properties", setting.key]
    try:
        edited = edit.with_value(text, path, value)
    except (KeyError, YamlError):
        raise SettingError(f"{setting.name}: cannot be set there; write it into the file once by hand") from None
    with suppress(ConfigurationError):  # Then the checks refuse it.
        for old, new in zip(queues.values(), _queues(edited), strict=True):
            if old is not found and replace(old.spec, queues=()) != replace(new.spec, queues=()):
                raise SettingError(
                    f"{setting.name}: it would change {old.full_name}, too (an anchor that is used twice)"
                )
    return edited


def _queues(text: str) -> Sequence[PlacedQueue]:
    """Those of the partition that is simulated."""
    placed = (each for each in places_of(load_text(text))[1] if each.spec.name == DEFAULT_PARTITION)
    return [queue for each in placed for queue in each.root.walk()]


def leaves_of(text: str) -> list[str]:
    """The leaves of the partition that is simulated; none where placement rules may make others."""
    placed = [each for each in places_of(load_text(text))[1] if each.spec.name == DEFAULT_PARTITION]
    if any(each.spec.placement_rules for each in placed):
        return []
    queues = (queue for each in placed for queue in each.root.walk())
    return [queue.full_name.lower() for queue in queues if not (queue.children or queue.spec.parent)]


def objection(text: str, base: str) -> str:
    """What the checks say of a file first that they do not say of the other one (a value may be ignored, too); empty:
    nothing.
    """
    known = {(problem.path, problem.message) for problem in check_text(base)}
    found = (problem for problem in check_text(text) if (problem.path, problem.message) not in known)
    return next((f"{problem.path}: {problem.message}" for problem in found), "")
