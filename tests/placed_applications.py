"""Applications put into queues: a scheduler made of placement rules and queues, for the tests of that."""

from __future__ import annotations

import json

from invariants.books import check_books

from fairlead.config import load_text
from fairlead.core.model.decisions import ApplicationAccepted, ApplicationRejected
from fairlead.core.model.events import AddApplication
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec
from fairlead.scheduler import Scheduler

LEAF, PARENT = {"name": "leaf"}, {"name": "par", "parent": True}
NO_RULE = "! failed to place application app: application rejected: no placement rule matched"
GANG = Resources({"vcore": 3000})


def scheduler(rules: object = None, queues: object = (LEAF, PARENT), **root: object) -> Scheduler:
    part = {"queues": [{"name": "root", "submitacl": "*", "queues": list(queues), **root}]}  # type: ignore[call-overload]
    if rules is not None:
        part["placementrules"] = rules
    return Scheduler(load_text(json.dumps({"partitions": [part]}), keep_broken_rules=True))


def place(s: Scheduler, queue: str = "", *, id: str = "app", **spec: object) -> str:  # noqa: A002
    """The queue the application got, or `! ` and why not."""
    spec = {"user": "alice"} | spec
    for d in s.handle(AddApplication(ApplicationSpec(id=id, queue=queue, **spec)), s.cluster.now_ms):  # type: ignore[arg-type]
        if isinstance(d, ApplicationAccepted):
            check_books(s)
            return d.queue
        if isinstance(d, ApplicationRejected):
            check_books(s)
            return "! " + d.reason.sentence()
    raise AssertionError("no answer")
