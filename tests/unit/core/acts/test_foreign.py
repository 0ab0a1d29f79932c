"""Work of other schedulers stands beside ours: room, host ports, affinity in both directions, and spread."""

from __future__ import annotations

import random
from dataclasses import replace

from invariants.books import check_books
from portions import where_compiled
from priority_clusters import PriorityCluster, labelled

from fairlead.core.acts import foreign
from fairlead.core.model.constraints import ANYWHERE, AffinityTerm, Constraints, SpreadTerm
from fairlead.core.model.decisions import Allocated, AskRejected
from fairlead.core.model.events import AddAsks, Cause, LabelAsk, LabelNode, Release, RemoveNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import TAG_FOREIGN, AskSpec
from fairlead.core.snapshot.dump import dump_cluster
from fairlead.scheduler import Scheduler

PORT = Constraints(ports=("TCP/0.0.0.0/80",))
NOT_WITH_WEB = Constraints(anti_affinity=(AffinityTerm(labelled("web")),))
WITH_WEB = Constraints(affinity=(AffinityTerm(labelled("web")),))
SPREAD = Constraints(spread=(SpreadTerm(labelled("web"), "zone"),))


def theirs(
    c: PriorityCluster, key: str, node: str, where: Constraints = ANYWHERE, app: str = "", cores: int = 1
) -> None:
    """Another scheduler has work there."""
    spec = AskSpec(
        application="", key=key, resources=Resources({"vcore": cores * 1000}), tags={TAG_FOREIGN: "default"},
        node=node, where=where, labels={"app": app} if app else {},
    )  # fmt: skip
    c.handle(AddAsks((spec,)))


def zoned(count: int) -> PriorityCluster:
    """So many nodes, `n1` and so on, in two zones by turns."""
    c = PriorityCluster(nodes={f"n{number}": 4 for number in range(1, count + 1)})
    for number in range(1, count + 1):
        c.handle(LabelNode(f"n{number}", {"zone": "ba"[number % 2]}))
    return c


def gone(c: PriorityCluster, key: str) -> None:
    c.handle(Release("", key, Cause.FINISHED))


def test_its_host_port_is_taken_until_it_ends() -> None:
    c = PriorityCluster()
    theirs(c, "f", "n1", PORT)
    c.submit("a", 1, where=PORT)
    assert c.run() == ([], [])
    gone(c, "f")
    assert c.run() == (["a@n1"], [])


def test_its_anti_affinity_keeps_ours_away_until_it_says_otherwise() -> None:
    """Also what came before, as others of its kind do not: their labels begin to matter."""
    c = PriorityCluster()
    c.submit("a", 3, labels={"app": "web"})
    c.submit("b", 1, labels={"app": "db"})
    theirs(c, "f", "n1", NOT_WITH_WEB)
    assert c.run() == (["b@n1"], [])
    theirs(c, "f", "n1", ANYWHERE, cores=0)
    assert c.run() == (["a@n1"], [])


def test_ours_goes_where_it_is_and_stays_away_from_it() -> None:
    c = PriorityCluster(nodes={"n1": 4, "n2": 4})
    c.submit("with", 1, where=WITH_WEB)
    assert c.run() == ([], [])
    theirs(c, "f", "n2", app="web")
    c.submit("apart", 1, where=NOT_WITH_WEB)
    assert c.run() == (["with@n2", "apart@n1"], [])


def test_it_counts_for_spread() -> None:
    c = zoned(2)
    theirs(c, "f", "n1", app="web")
    c.submit("one", 1, labels={"app": "web"}, where=SPREAD)
    assert c.run() == (["one@n2"], [])


def test_it_goes_with_its_node() -> None:
    c = PriorityCluster(nodes={"n1": 4, "n2": 4})
    theirs(c, "f", "n2", NOT_WITH_WEB, app="web")
    c.handle(RemoveNode("n2"))
    part = c.s.cluster.partitions["default"]
    assert not part.nodes.foreign_on
    assert not part.nodes.terrain.repellers.tallies
    assert not part.nodes.terrain.label_keys


def test_terms_that_make_no_sense_are_said_and_its_room_counts() -> None:
    c = PriorityCluster()
    theirs(c, "f", "n1", Constraints(ports=("80",)), cores=2)
    assert [d.reason.sentence() for d in c.decided if isinstance(d, AskRejected)] == [
        "ports: '80' is not protocol/ip/port, such as TCP/0.0.0.0/8080"
    ]
    assert c.s.cluster.partitions["default"].nodes.nodes["n1"].free == {"vcore": 2000}


def test_an_end_that_is_told_twice_is_passed_over() -> None:
    c = PriorityCluster()
    theirs(c, "f", "n1")
    part = c.s.cluster.partitions["default"]
    foreign.end(part, "f")
    version = part.books_version
    foreign.end(part, "f")
    assert part.books_version == version


@where_compiled
def test_at_random_the_books_hold_and_nothing_that_fits_waits() -> None:
    """Work of others and of ours comes, goes, moves, and gets other labels; a state that was read back agrees."""
    kinds = (ANYWHERE, PORT, NOT_WITH_WEB, WITH_WEB, SPREAD)
    for seed in range(12):
        rng = random.Random(seed)
        c = zoned(4)
        started = 0
        for step in range(60):
            app, where = rng.choice(("web", "db", "")), rng.choice(kinds)
            what = rng.randrange(6)
            if what < 2:
                theirs(c, f"f{rng.randrange(6)}", f"n{rng.randrange(4) + 1}", where, app)
            elif what == 2:
                gone(c, f"f{rng.randrange(6)}")
            elif what == 3:
                c.submit(f"a{step}", 1, labels={"app": app} if app else {}, where=where)
            else:
                apps = sorted(c.s.cluster.partitions["default"].applications)
                name = rng.choice(apps) if apps else "none"
                if what == 4:
                    c.handle(LabelAsk(name, name, {"app": app} if app else {}, where))
                elif rng.random() < 0.5:
                    c.finished(name)
            started += len(c.run()[0])
            again = Scheduler.load(c.s.dump())
            assert not [d for d in again.schedule(c.now_ms) if isinstance(d, Allocated)], (seed, step)
            check_books(again)
        assert started > 5


def test_the_same_report_again_changes_nothing() -> None:
    c = PriorityCluster()
    theirs(c, "f", "n1", NOT_WITH_WEB, app="web")
    part = c.s.cluster.partitions["default"]
    before = dump_cluster(c.s.cluster)
    spec, _ = part.nodes.nodes["n1"].foreign["f"]
    foreign.report(part, part.nodes.nodes["n1"], replace(spec))
    check_books(c.s)
    after = dump_cluster(c.s.cluster)
    assert after["partitions"][0]["nodes"] == before["partitions"][0]["nodes"]
