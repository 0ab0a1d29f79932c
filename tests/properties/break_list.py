"""What breaks are, and those that are written down (`breaks.toml`).

Decides what one says, and whether it fits the code. Never runs anything. Invariant: a break that fits changes exactly
one place.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("breaks.toml")


class Break(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One change that makes the scheduler wrong."""

    name: str
    file: str
    """From the top of the checkout."""
    old: str
    """Exactly as it stands there, and only once."""
    new: str
    by: str = ""
    """What finds it: `courses RULE`, or tests as pytest is given them; empty: whatever does."""
    likely_by: str = ""
    """Tests that are tried first; others may find it as well."""


class DoesNotFit(Exception):
    """The list of breaks and the code do not fit together; says which break and why."""


def read_breaks(path: Path = LIST) -> list[Break]:
    """The breaks of a list; raises `DoesNotFit` when it is none, or one name stands there twice."""
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=dict[str, list[Break]]).get("break", [])
    except msgspec.DecodeError as e:
        raise DoesNotFit(f"{path.name}: {e}") from None
    names = [each.name for each in found]
    if doubled := [name for name in names if names.count(name) > 1]:
        raise DoesNotFit(f"{path.name}: {doubled[0]!r} stands there twice")
    return found


def broken_text(each: Break, root: Path = ROOT) -> str:
    """The text of its file with the break in it; raises `DoesNotFit` unless the old text is there, and only once."""
    path = root / each.file
    text = path.read_text() if path.is_file() else None
    if text is None:
        raise DoesNotFit(f"{each.name}: there is no file {each.file}")
    count = text.count(each.old) if each.old else 0
    if count != 1:
        raise DoesNotFit(f"{each.name}: {each.file} has the old text {count} times, not once; mend the list")
    if each.old == each.new:
        raise DoesNotFit(f"{each.name}: the new text is the old one")
    return text.replace(each.old, each.new)
