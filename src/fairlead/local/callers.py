"""Who asks, and what he may see and do with single jobs: its owner, administrators of its queue and of the service.

Decides by the access lists as they are now, for the queue that a job is in now. Never looks at who may submit for
himself (placement does), and never finds out who somebody is (`fairlead.service.identity` does). Invariant: what a
caller may not see does not exist for him; what he may do, he may see.

The owner acts on his own jobs. Administrators of a queue (on its `adminacl`, or on one above it) see and act on all
jobs in it; what a job writes is its owner's business and that of the service's administrators alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.books.user_limits import groups_of
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local import accounts
from fairlead.local.job import Job
from fairlead.policy.queue_choice.acl import may_submit, read_access_list
from fairlead.policy.queue_choice.dynamic import nearest
from fairlead.runtime import Refusal

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queues import Queue
    from fairlead.local.history_records import JobSpec
    from fairlead.local.job import Job
    from fairlead.scheduler import Scheduler


def is_of(spec: JobSpec, uid: int, user: str) -> bool:
    """Whether a job is of this user: who has the number of one who was removed is somebody else.

    Where that had no name at one of the times, or none is given, it is enough: accounts may not be found for a while.
    """
    return spec.uid == uid and (spec.user == user or not user or accounts.unnamed(uid) in (spec.user, user))


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who was recognised."""

    user: str
    uid: int
    is_admin: bool = False
    may_submit: bool = True
    """False where work cannot run as him: a service without root's rights runs work as its own user alone."""
    groups: tuple[str, ...] = ()
    """The names of his groups at the moment, as the system has them."""
    owner_only: bool = False
    """He acts on his own jobs alone, whatever he administers."""
    within: str = ""
    """The queue beyond which, with those below it, no job exists for him; empty: all do."""
    heads_it: bool = False
    """He administers the queue `within`, whomever its access lists name."""

    @property
    def is_guest(self) -> bool:
        """Whether this is nobody in particular, who may look around."""
        return not self.user and not self.is_admin

    def reaches(self, path: str) -> bool:
        """Whether jobs of this queue exist for him at all."""
        return not self.within or path == self.within or path.startswith(f"{self.within}.")

    def owns(self, spec: JobSpec) -> bool:
        """Whether this job is his."""
        return is_of(spec, self.uid, self.user)

    def may_see(self, job: Job) -> bool:
        """Whether all of this job, with what it writes, exists for him."""
        return self.is_admin or (self.reaches(job.queue) and (self.heads_it or self.owns(job.spec)))

    def administers(self, path: str, lists: Sequence[str]) -> bool:
        """Whether he administers this queue; `lists`: the access lists of its administrators."""
        if self.is_admin:
            return True
        if self.owner_only or not self.reaches(path):
            return False
        return self.heads_it or allows(lists, self)

    def require_admin(self, what: str) -> None:
        """Refuse unless he is an administrator."""
        if not self.is_admin:
            raise Refusal("forbidden", f"only administrators may {what}; ask one of them")

    def require_submit(self, runs_as: str) -> None:
        """Refuse where the job could not run as him."""
        if not self.may_submit:
            raise Refusal(
                "forbidden",
                f"this service runs work as {runs_as} alone, and you are {self.user}; start one of your own with "
                f"`fairlead up`, or have it started by root for everybody",
            )


def administrators(scheduler: Scheduler, path: str) -> tuple[str, ...]:
    """The access lists of those who administer a queue, from it up; of a queue that is gone, those above it."""
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    if partition is None:
        return ()
    queue = _queue(partition, path)
    return tuple(above.admin_acl for above in queue.lineage if above.admin_acl.strip())


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose business a job is: its owner's, and that of the administrators of its queue."""

    spec: JobSpec
    queue: str
    administrators: tuple[str, ...] = ()

    def is_for(self, caller: Caller) -> bool:
        """Whether it is the caller's business too."""
        is_his = caller.owns(self.spec) and caller.reaches(self.queue)
        return is_his or caller.administers(self.queue, self.administrators)


def whose(scheduler: Scheduler, job: Job) -> Whose:
    """Whose business a job is now."""
    return Whose(job.spec, job.queue, administrators(scheduler, job.queue))


def _queue(partition: Partition, path: str) -> Queue:
    return nearest(partition.root, path)[0] if path.startswith("root.") else partition.root


def allows(lists: Sequence[str], caller: Caller) -> bool:
    """Whether one of these access lists names the caller or one of his groups; `*` is every user, and no guest."""
    if not caller.user:
        return False
    groups = groups_of(caller.user, caller.groups)
    return any(read_access_list(text).allows(caller.user, groups) for text in lists)


class Rights:
    """What one caller may do, as long as the books stand still."""

    def __init__(self, caller: Caller, scheduler: Scheduler) -> None:
        self.caller, self._scheduler = caller, scheduler
        self._administers: dict[str, bool] = {}

    def administers(self, path: str) -> bool:
        """Whether he is an administrator of this queue (or of the service)."""
        found = self._administers.get(path)
        if found is None:
            lists = () if self.caller.is_admin else administrators(self._scheduler, path)
            found = self._administers[path] = self.caller.administers(path, lists)
        return found

    def may_act_on_others(self) -> bool:
        """Whether there may be jobs of others that he may see; False: only his own can exist for him."""
        caller = self.caller
        if caller.is_admin or caller.heads_it:
            return True
        partition = self._scheduler.cluster.partitions.get(DEFAULT_PARTITION)
        if caller.owner_only or partition is None:
            return False
        lists = {queue.admin_acl for queue in partition.root.walk() if queue.admin_acl.strip()}
        return allows(tuple(lists), caller)

    def may_act(self, job: Job) -> bool:
        """Whether he may see it, cancel it, change its priority and move it out of its queue."""
        return self.caller.may_see(job) or self.administers(job.queue)

    def may_move_to(self, job: Job, target: Queue) -> bool:
        """Whether he may put this job there: its owner could have submitted it, or he administers that queue too."""
        if not self.caller.reaches(target.path):
            return False
        return may_submit(target, job.spec.user, job.spec.groups) or self.administers(target.path)
