"""The people of this machine, as the system knows them.

Decides what a user id means: name, groups, home directory. Never caches for longer than a call needs, so that a user
who lost a group loses it at once. Invariant: an id without an entry is still somebody, named after the number.
"""

from __future__ import annotations

import grp
import os
import pwd
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Account:
    """One user of this machine."""

    name: str
    uid: int
    gid: int
    gids: tuple[int, ...] = ()
    """Every group, the primary one first."""
    home: str = "/"
    is_known: bool = True
    """False: nobody registered it, or that cannot be found out now."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups; a group without a name is shown as its number."""
        return tuple(_group_name(gid) for gid in self.gids)


def unnamed(uid: int) -> str:
    """The name of a user id that nobody registered."""
    return f"uid-{uid}"


def by_uid(uid: int) -> Account:
    """The account of a user id; one that nobody registered is named `uid-N` and has no groups but its own number.

    Raises OSError where that cannot be looked up now.
    """
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        _require_descriptor()
        return Account(unnamed(uid), uid, uid, (uid,), is_known=False)
    found = _account(entry)
    if len(found.gids) == 1:
        _require_descriptor()
    return found


def by_name(name: str) -> Account | None:
    """The account of this name, or None."""
    try:
        return _account(pwd.getpwnam(name))
    except KeyError:
        return None


def _require_descriptor() -> None:
    """The system says that there is nobody, or no group more, also where it could open no file to look into."""
    os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))


def _account(entry: pwd.struct_passwd) -> Account:
    gids = os.getgrouplist(entry.pw_name, entry.pw_gid)
    ordered = (entry.pw_gid, *sorted(g for g in set(gids) if g != entry.pw_gid))
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, ordered, entry.pw_dir or "/")


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        _require_descriptor()
        return str(gid)
