"""Users and groups that a queue file names and this machine does not know.

Decides which names of access lists and limits mean nobody here. Never changes what they mean: an account may be made
later, and counts from then on. Invariant: a name is looked up once, however often it is written.
"""

from __future__ import annotations

import grp
from collections.abc import Callable, Iterator

from fairlead.core.model.specs import ClusterSpec, QueueSpec
from fairlead.local import accounts
from fairlead.policy.queue_choice.acl import read_access_list


def knows_user(name: str) -> bool:
    """Whether this machine has a user of this name."""
    return accounts.by_name(name) is not None


def knows_group(name: str) -> bool:
    """Whether this machine has a group of this name."""
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


def unknown_accounts(spec: ClusterSpec) -> list[str]:
    """One sentence for each name that this machine does not know, in the order of the file, with where it stands."""
    places: dict[tuple[str, str], list[str]] = {}
    for partition in spec.partitions:
        for kind, name, where in _named(partition.root, ""):
            places.setdefault((kind, name), []).append(where)
    known: dict[str, Callable[[str], bool]] = {"user": knows_user, "group": knows_group}
    return [
        f"this machine has no {kind} {name!r}, which {_listed(where)} names: it lets nobody in"
        for (kind, name), where in places.items()
        if not known[kind](name)
    ]


def _named(queue: QueueSpec, above: str) -> Iterator[tuple[str, str, str]]:
    """Kind and name of each account that a queue, and those below it, name, and where."""
    path = f"{above}.{queue.name}" if above else queue.name
    for key, text in (("submitacl", queue.submit_acl), ("adminacl", queue.admin_acl)):
        found = read_access_list(text)
        yield from (("user", name, f"{key} of {path}") for name in sorted(found.named_users))
        yield from (("group", name, f"{key} of {path}") for name in sorted(found.named_groups))
    for limit in queue.limits:
        yield from (("user", name, f"a limit of {path}") for name in limit.users if name != "*")
        yield from (("group", name, f"a limit of {path}") for name in limit.groups if name != "*")
    for child in queue.queues:
        yield from _named(child, path)


def _listed(where: list[str]) -> str:
    more = f" and {len(where) - 2} more" if len(where) > 2 else ""
    return " and ".join(where[:2]) + more
