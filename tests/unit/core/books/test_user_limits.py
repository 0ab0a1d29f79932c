"""Limits of users and groups: which hold for an application, and what is counted against them."""

from __future__ import annotations

from collections.abc import Mapping

from loose_books import application, tree

from fairlead.core.books.application_limits import closed_place
from fairlead.core.books.applications import Application
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import UNGROUPED, Ceiling, Trackers
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import LimitSpec, QueueSpec

ONE = (("vcore", 1),)


def limit(vcore: int | None = None, applications: int = 0, **who: tuple[str, ...]) -> LimitSpec:
    """For these users and groups."""
    most = Limits({"vcore": vcore}) if vcore is not None else None
    return LimitSpec(max_resources=most, max_applications=applications, **who)


def trackers(by_path: Mapping[str, tuple[LimitSpec, ...]]) -> tuple[Trackers, dict[str, Queue]]:
    """Of `root.a` and `root`."""
    leaf = QueueSpec(name="A", limits=by_path.get("root.a", ()))
    root = QueueSpec(name="root", parent=True, queues=(leaf,), limits=by_path.get("root", ()))
    return Trackers(root), tree("root.a")


def joined(
    known: Trackers, queues: dict[str, Queue], user: str = "ann", *groups: str, name: str = "app"
) -> Application:
    """An application that is under its limits and runs."""
    app = application(queues["root.a"], name, user=user, groups=groups)
    app.tracked = True
    known.join(app)
    return app


def names(app: Application) -> list[tuple[str, str, str]]:
    """Kind, name and queue of each ceiling over it."""
    return [(c.kind, c.name, c.queue) for c in app.allowance.ceilings] if app.allowance is not None else []


def test_a_tree_without_limits_keeps_nothing() -> None:
    known, queues = trackers({})
    app = joined(known, queues)
    assert (known.ceilings, known.allowances, app.allowance) == ({}, {}, None)


def test_the_users_limits_come_first_and_from_the_leaf_up() -> None:
    """A named one of a queue replaces the wildcard there; each user has the wildcard alone."""
    known, queues = trackers(
        {"root.a": (limit(3, users=("*",)), limit(1, users=("ann",))), "root": (limit(5, users=("*",)),)}
    )
    ann, bob = joined(known, queues), joined(known, queues, "bob", name="b")
    assert names(ann) == [("user", "ann", "root.a"), ("user", "ann", "root")]
    assert [ceiling.max for ceiling in known.ceilings.values()] == [
        {"vcore": 1},
        {"vcore": 5},
        {"vcore": 3},
        {"vcore": 5},
    ]
    assert names(bob) == [("user", "bob", "root.a"), ("user", "bob", "root")]


def test_an_application_counts_for_the_first_group_of_the_nearest_queue() -> None:
    """In the order of the file; the wildcard is for those of no named group."""
    limits = (limit(2, groups=("dev",)), limit(2, groups=("ops",)), limit(9, groups=("*",)))
    known, queues = trackers({"root.a": limits})
    assert known.group_for(application(queues["root.a"], groups=("ops", "dev"))) == "dev"
    assert known.group_for(application(queues["root.a"], groups=("hr",))) == "*"


def test_a_user_without_groups_is_a_group_of_its_own() -> None:
    known, queues = trackers({"root": (limit(2, groups=("ann",)),)})
    assert known.group_for(application(queues["root.a"], user="ann")) == "ann"
    assert known.group_for(application(queues["root.a"], user="bob")) == UNGROUPED


def test_what_is_used_counts_under_each_ceiling_until_it_is_given_back() -> None:
    known, queues = trackers({"root.a": (limit(2, users=("*",)),), "root": (limit(1, groups=("*",)),)})
    app = joined(known, queues)
    assert app.allowance is not None
    app.allowance.add(app.id, ONE)
    full = app.allowance.short_of_room(ONE)
    assert full is not None
    assert (full.kind, full.queue) == ("group", "root")
    app.allowance.take(ONE)
    assert app.allowance.short_of_room(ONE) is None


def test_as_many_applications_run_as_may() -> None:
    """One that runs already is not held back by itself."""
    known, queues = trackers({"root.a": (limit(applications=1, users=("*",)),)})
    first, second = joined(known, queues), application(queues["root.a"], "second", user="ann")
    known.join(second)
    assert first.allowance is second.allowance
    assert first.allowance is not None
    first.allowance.add(first.id, ONE)
    assert isinstance(closed_place(second), Ceiling)
    assert closed_place(first) is None
    first.allowance.strike_off(first.id)
    assert closed_place(second) is None


def test_a_ceiling_goes_with_the_last_that_is_under_it() -> None:
    known, queues = trackers({"root.a": (limit(2, users=("*",)),)})
    first, second = joined(known, queues), joined(known, queues, name="second")
    known.leave(first)
    assert len(known.ceilings) == 1
    known.leave(second)
    assert (known.ceilings, known.allowances) == ({}, {})
    assert second.allowance is None


def test_what_joins_brings_along_what_it_uses() -> None:
    """Placeholders too."""
    known, queues = trackers({"root.a": (limit(9, users=("*",)),)})
    app = application(queues["root.a"], user="ann")
    app.tracked, app.allocated, app.placeholders = True, {"vcore": 2}, {"vcore": 3}
    known.join(app)
    [ceiling] = known.ceilings.values()
    assert (ceiling.allocated, list(ceiling.applications)) == ({"vcore": 5}, ["app"])
