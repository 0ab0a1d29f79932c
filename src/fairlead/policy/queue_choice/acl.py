"""Access: which users may submit to a queue.

Decides from the access lists of a queue and of those above it. Never looks up groups and never knows how users prove
who they are. Invariant: what cannot be read allows no user.

An access list is `users[ groups]`: names separated by commas, one blank between the two parts. `*` as the whole list of
users or of groups is everybody. Names that can match nobody are passed over. Upper and lower case differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fairlead.core.books.queues import RECOVERY_QUEUE, Queue
from fairlead.core.books.user_limits import groups_of
from fairlead.core.model.names import ACL_GROUP, ACL_USER

EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class AccessList:
    """An access list, read."""

    everybody: bool = False
    named_users: frozenset[str] = frozenset()
    named_groups: frozenset[str] = frozenset()

    def allows(self, user: str, groups: tuple[str, ...]) -> bool:
        """Whether the user, or one of the groups, is on it."""
        return self.everybody or user in self.named_users or any(group in self.named_groups for group in groups)


def access_list_problem(text: str) -> str:
    """What is wrong with an access list, as a sentence; empty when it can be read."""
    if text.strip() not in ("", EVERYBODY) and len(text.split(" ")) > 2:
        return f"multiple spaces found in ACL: '{text}'"
    return ""


@lru_cache(maxsize=4096)
def read_access_list(text: str) -> AccessList:
    """The list that a text means; one that cannot be read allows no user."""
    if access_list_problem(text):
        return AccessList()
    users, _, groups = text.partition(" ")
    if EVERYBODY in (text.strip(), users, groups):
        return AccessList(everybody=True)
    return AccessList(
        named_users=frozenset(name for name in users.split(",") if ACL_USER.fullmatch(name)),
        named_groups=frozenset(name for name in groups.split(",") if ACL_GROUP.fullmatch(name)),
    )


def may_submit(queue: Queue, user: str, groups: tuple[str, ...] = ()) -> bool:
    """Whether the user may submit to `queue`: by being on its list of submitters or administrators, or on one above it.

    Nobody submits to the recovery queue; applications are put there.
    """
    if queue.path == RECOVERY_QUEUE:
        return False
    groups = groups_of(user, groups)
    lists = (text for above in queue.lineage for text in (above.submit_acl, above.admin_acl))
    return any(read_access_list(text).allows(user, groups) for text in lists)
