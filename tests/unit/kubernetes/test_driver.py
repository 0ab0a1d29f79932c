"""The driver: changes in, acts out, with the real scheduler between them."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from driven_cluster import PRIORITY, Cluster, binds
from invariants.books import check_books

from fairlead.config import load_text
from fairlead.kubernetes.acts import Bind, CreatePlaceholder, DeletePod, EvictPod, Explain, Nominate, Record
from fairlead.kubernetes.bodies import unscheduled
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.kinds import NODES, PODS, PRIORITY_CLASSES, Kind
from fairlead.kubernetes.pod_store import Books
from fairlead.kubernetes.reflector import Changed, Deleted
from fairlead.kubernetes.translate import identity


def test_a_pod_is_bound_and_its_end_gives_the_room_back() -> None:
    """Waiting, placed, bound, running, gone."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("a", "3")
    cluster.pod("b", "3")
    acts = cluster.acts()
    assert binds(acts) == {"a": "n1"}
    cluster.bind_all(acts)
    assert cluster.acts() == []
    cluster.pod("a", "3", node="n1", status={"phase": "Succeeded"})
    assert binds(cluster.acts()) == {"b": "n1"}
    cluster.gone("a")
    assert cluster.used("n1") == 3000


def test_other_schedulers_pods_use_room() -> None:
    """A pod of another scheduler is no ask, but what it uses is not free."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("theirs", "3", node="n1", spec={"schedulerName": "default-scheduler"})
    cluster.pod("waits-there", "1", spec={"schedulerName": "default-scheduler"})
    cluster.pod("ours", "2")
    assert binds(cluster.acts()) == {}
    cluster.gone("theirs")
    assert binds(cluster.acts()) == {"ours": "n1"}


def test_pods_come_before_their_node() -> None:
    """What is bound to a node that we do not know yet enters with the node."""
    cluster = Cluster()
    cluster.pod("a", "3", node="n1")
    cluster.pod("b", "3")
    assert cluster.acts() == []
    cluster.node("n1")
    assert binds(cluster.acts()) == {}
    assert cluster.used("n1") == 3000


def test_a_refused_binding_is_undone_and_tried_again() -> None:
    """The place is given back, the pod is told why, calls for no node, and after the pause waits again."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("a")
    assert binds(cluster.acts()) == {"a": "n1"}
    cluster.now = 10
    cluster.driver.bind_failed("u-a", "n1", "no right to do that", 10)
    assert cluster.used("n1") == 0
    acts = cluster.acts()
    assert binds(acts) == {}
    (told,) = [act for act in acts if isinstance(act, Explain)]
    assert told.message == "a place on n1 was refused, and it is tried again after a pause: no right to do that"
    assert unscheduled(told, "")["status"]["conditions"][0]["reason"] == "SchedulerError"
    assert [act.reason for act in acts if isinstance(act, Record)] == ["FailedScheduling"]
    cluster.now = 1_000
    cluster.driver.try_again("u-a", 1_000)
    assert binds(cluster.acts()) == {"a": "n1"}


def test_preemption_nominates_evicts_and_binds_when_the_room_is_free() -> None:
    """Kubernetes' rules: victims stop, the node is nominated, the preemptor runs when the room is free."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("low", "3", priority=1)
    cluster.bind_all(cluster.acts())
    cluster.pod("high", "3", priority=9)
    acts = cluster.acts()
    evicted = next(a for a in acts if isinstance(a, EvictPod))
    assert (evicted.pod.name, evicted.by and evicted.by.name, evicted.node) == ("low", "high", "n1")
    assert evicted.message == "makes room on n1 for default/high (priority 9 over 1)"
    assert any(isinstance(a, Nominate) and a.pod.name == "high" and a.node == "n1" for a in acts)
    cluster.pod("low", "3", priority=1, node="n1", deletionTimestamp="2026-01-01T00:00:30Z")
    cluster.node("n2", "1")
    cluster.pod("small", "1", priority=0)
    assert binds(cluster.acts()) == {"small": "n2"}
    cluster.gone("low")
    assert binds(cluster.acts()) == {"high": "n1"}


def test_a_victim_on_an_unreachable_node_does_not_keep_the_preemptor_waiting_for_ever() -> None:
    """A minute after its grace it is overdue: the pod is nominated elsewhere, and nobody is evicted twice."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("dead", "3", priority=1)
    cluster.bind_all(cluster.acts())
    cluster.node("n2")
    cluster.pod("dearer", "3", priority=2)
    cluster.bind_all(cluster.acts())
    cluster.pod("high", "3", priority=9)
    assert [a.pod.name for a in cluster.acts() if isinstance(a, EvictPod)] == ["dead"]
    cluster.pod("dead", "3", priority=1, node="n1", deletionTimestamp="2026-01-01T00:00:30Z")
    cluster.now = 89_999
    assert cluster.acts() == []
    cluster.now = 90_000
    acts = cluster.acts()
    assert [a.pod.name for a in acts if isinstance(a, EvictPod)] == ["dearer"]
    assert [a.node for a in acts if isinstance(a, Nominate)][-1] == "n2"
    cluster.gone("dearer")
    assert binds(cluster.acts()) == {"high": "n2"}
    cluster.now = 3_600_000
    assert cluster.acts() == []


def test_a_pod_that_is_bound_to_a_node_that_is_gone_is_placed_nowhere_else() -> None:
    """The binding was on its way when the node went; it waited again by then. Its room is where the server has it."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("p")
    acts = cluster.acts()
    cluster.driver.take(Deleted(NODES, "", "n1", "u-n1"), 0)
    cluster.acts()
    cluster.bind_all(acts)
    cluster.node("n2")
    cluster.acts()
    cluster.node("n1")
    cluster.acts()
    assert (cluster.used("n1"), cluster.used("n2")) == (1000, 0)


def test_a_lost_node_and_its_return() -> None:
    """What was bound there is out of the books, and back with the node."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("a", "3", node="n1")
    cluster.driver.take(Deleted(NODES, "", "n1", "u-n1"), 0)
    assert cluster.acts() == []
    cluster.node("n1")
    assert cluster.used("n1") == 3000


def test_a_pod_that_makes_no_sense_is_told_so_and_stops_nobody() -> None:
    """An unreadable gang on one pod; the next one runs."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("bad", annotations={identity.TASK_GROUPS: "[{"})
    cluster.pod("good")
    acts = cluster.acts()
    assert any(isinstance(a, Explain) and a.pod.name == "bad" and "task-groups" in a.message for a in acts)
    assert binds(acts) == {} or binds(acts) == {"good": "n1"}


def test_a_rejected_application_is_tried_again_with_another_queue_file() -> None:
    """Its pods wait with the reason until a queue takes them."""
    strict = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
    cluster = Cluster(strict)
    cluster.node("n1")
    cluster.pod("p", labels={"queue": "root.b"})
    acts = cluster.acts()
    assert [a.code for a in acts if isinstance(a, Explain)] == ["application-refused"]
    cluster.driver.configure(load_text(strict.replace("name: a", "name: b")), 5)
    cluster.now = 5
    assert binds(cluster.acts()) == {"p": "n1"}


TWO = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: old}, {name: young}]}]}]"
GANG = '[{"name": "w", "minMember": 2, "minResource": {"cpu": "2"}}]'


def member(cluster: Cluster, name: str, **more: Any) -> None:
    notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: GANG, **more}
    cluster.pod(name, "2", labels={"applicationId": "job"}, annotations=notes)


def test_a_gang_starts_whole_or_not_at_all() -> None:
    """Placeholders are created; members are held back until all have a node, then they take their places."""
    cluster = Cluster()
    cluster.node("n1", "3")
    cluster.full_node("n2", "3")
    member(cluster, "m0")
    member(cluster, "m1")
    made = [a for a in cluster.acts() if isinstance(a, CreatePlaceholder)]
    assert len(made) == 2
    for placeholder in made:
        member(cluster, placeholder.name, **{identity.PLACEHOLDER: "true"})
    first = cluster.acts()
    assert len(binds(first)) == 1
    cluster.bind_all(first)
    assert not [a for a in cluster.acts() if isinstance(a, Bind)]
    cluster.gone("on-n2")
    second = cluster.acts()
    cluster.bind_all(second)
    gone = [a for a in [*second, *cluster.acts()] if isinstance(a, DeletePod)]
    assert len(gone) == 2
    for act in gone:
        cluster.gone(act.pod.name)
    assert sorted(binds(cluster.acts())) == ["m0", "m1"]


def declared(cluster: Cluster, style: str = "Soft") -> list[Any]:
    """Two of a group `w`, declared by a pod of no group; the placeholders that are wanted."""
    words = {identity.TASK_GROUPS: GANG, identity.PARAMETERS: f"gangSchedulingStyle={style}"}
    cluster.pod("driver", "1", labels={"applicationId": "job"}, annotations=words)
    made = [a for a in cluster.acts() if isinstance(a, CreatePlaceholder)]
    for placeholder in made:
        member(cluster, placeholder.name, **{identity.PLACEHOLDER: "true"})
    cluster.pod("m0", "2", labels={"applicationId": "job"}, annotations={identity.TASK_GROUP_NAME: "w"})
    return made


def state(cluster: Cluster) -> str:
    applications = cluster.driver.scheduler.cluster.partitions["default"].applications
    return str(applications["job"].state) if "job" in applications else "gone"


def test_the_pod_that_declares_the_groups_waits_for_them_too() -> None:
    """As all of its application but placeholders, and says so; when the whole gang has its room it starts."""
    cluster = Cluster()
    cluster.node("n1", "3")
    cluster.full_node("n2", "3")
    made = declared(cluster)
    first = cluster.acts()
    assert set(binds(first)) < {placeholder.name for placeholder in made}
    told = {a.pod.name: a.message for a in first if isinstance(a, Explain)}
    assert told["m0"] == "the gang of application job reserves its room: 0 of 2 have it"
    cluster.bind_all(first)
    cluster.gone("on-n2")
    second = cluster.acts()
    cluster.bind_all(second)
    assert set(binds(first)) | set(binds(second)) == {placeholder.name for placeholder in made}
    assert set(binds(cluster.acts())) == {"driver"}


@pytest.mark.parametrize(("style", "runs"), [("Soft", {"driver", "m0"}), ("Hard", set())])
def test_a_gang_that_does_not_come_together(style: str, runs: set[str]) -> None:
    """It is `Accepted` meanwhile; at the timeout Soft runs all pods, Hard fails and says so on each."""
    cluster = Cluster()
    cluster.node("n1", "3")
    cluster.full_node("n2", "2")
    declared(cluster, style)
    cluster.bind_all(cluster.acts())
    assert state(cluster) == "Accepted"
    cluster.now = 16 * 60_000
    placed: set[str] = set()
    for _ in range(3):
        acts = cluster.acts()
        placed |= set(binds(acts))
        cluster.bind_all(acts)
        for act in acts:
            if isinstance(act, DeletePod) and ("pods", act.pod.name) in cluster.things:
                cluster.gone(act.pod.name)
    assert placed == runs
    if style == "Hard":
        cluster.pod("late", "1", labels={"applicationId": "job"})
        assert any("failed" in a.message for a in cluster.acts() if isinstance(a, Explain))


def test_no_member_of_a_gang_that_failed_takes_the_room_of_its_placeholders() -> None:
    """They go one by one, and the scheduler looks at the room of each; another queue file changes nothing."""
    cluster = Cluster()
    cluster.node("n1", "4")
    cluster.full_node("n2", "2")
    hard = {identity.PARAMETERS: "gangSchedulingStyle=Hard", identity.TASK_GROUPS: GANG.replace("2,", "3,")}
    for number in range(3):
        member(cluster, f"m{number}", **hard)
    made = [a for a in cluster.acts() if isinstance(a, CreatePlaceholder)]
    for placeholder in made:
        member(cluster, placeholder.name, **{identity.PLACEHOLDER: "true"})
    cluster.bind_all(cluster.acts())
    cluster.now = 16 * 60_000
    first = cluster.acts()
    gone = [act.pod.name for act in first if isinstance(act, DeletePod)]
    assert len(gone) == 3
    told = {act.pod.name: act.message for act in first if isinstance(act, Explain)}
    assert told["m0"] == "application job has failed: its gang (Hard) did not get all of its room in time"
    for name in gone:
        cluster.gone(name)
        member(cluster, "m0", **hard)  # It has another condition at the server.
        assert not binds(cluster.acts())
    cluster.driver.configure(load_text(TWO.replace("name: old", "name: default")), cluster.now)
    cluster.now += 16 * 60_000
    assert not [act for act in cluster.acts() if isinstance(act, Bind | CreatePlaceholder)]


def test_a_group_without_members_is_no_gang() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("p", annotations={identity.TASK_GROUPS: GANG.replace("2,", "0,")})
    assert binds(cluster.acts()) == {"p": "n1"}


def test_of_two_gangs_that_hold_each_other_the_younger_makes_its_placeholders_again() -> None:
    """Its placeholder pods are deleted; the older one starts; those that were deleted come again, and wait."""
    cluster = Cluster()
    cluster.driver.configure(load_text(TWO), 0)
    cluster.node("n1", "4")

    def pod(job: str, name: str, **more: Any) -> None:
        notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: GANG.replace("2,", "3,").replace('"2"', '"1"')}
        labels = {"applicationId": job, "queue": f"root.{job}"}
        cluster.pod(name, "1", labels=labels, annotations={**notes, **more})

    for job in ("old", "young"):
        pod(job, f"{job}-m0")
        cluster.now += 1
    made = [a for a in cluster.acts() if isinstance(a, CreatePlaceholder)]
    assert len(made) == 6
    acts = []
    for placeholder in sorted(made, key=lambda act: act.name.rpartition("-")[2]):  # In turns.
        pod(placeholder.application, placeholder.name, **{identity.PLACEHOLDER: "true"})
        acts += cluster.acts()
    deleted = [a.pod.name for a in acts if isinstance(a, DeletePod)]
    assert len(deleted) == 2
    assert all("young" in name for name in deleted)
    cluster.bind_all(acts)
    again = []
    for name in deleted:
        cluster.gone(name)
        again += [a for a in cluster.acts() if isinstance(a, CreatePlaceholder)]
    assert sorted(a.name for a in again) == sorted(deleted)
    applications = cluster.driver.scheduler.cluster.partitions["default"].applications
    assert str(applications["old"].state) == "Running"
    for placeholder in again:
        pod(placeholder.application, placeholder.name, **{identity.PLACEHOLDER: "true"})
    cluster.acts()
    assert applications["young"].placeholder_count == 1
    assert applications["young"].pending_count == 2


def test_a_placeholder_that_is_stopped_for_other_work_is_made_again() -> None:
    """Its gang does not begin meanwhile, though its last placeholder gets a node in the same call."""
    cluster = Cluster()
    cluster.node("n1", "3", labels={"kubernetes.io/hostname": "n1"})
    cluster.full_node("n2", "3")
    made = declared(cluster)
    first = cluster.acts()
    cluster.bind_all(first)
    standing = next(a.name for a in made if a.name in binds(first))
    cluster.pod("strong", "3", priority=9, spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}})
    cluster.gone("on-n2")
    acts = cluster.acts()
    assert [a.pod.name for a in acts if isinstance(a, DeletePod)] == [standing]
    assert list(binds(acts).values()) == ["n2"]
    cluster.bind_all(acts)
    assert state(cluster) == "Accepted"
    cluster.gone(standing)
    acts = cluster.acts()
    assert binds(acts) == {"strong": "n1"}
    assert [a.name for a in acts if isinstance(a, CreatePlaceholder)] == [standing]
    cluster.node("n3", "3")
    member(cluster, standing, **{identity.PLACEHOLDER: "true"})
    assert binds(cluster.acts()) == {standing: "n3"}
    assert state(cluster) == "Running"


@pytest.mark.parametrize("seed", range(30))
def test_any_order_and_repetition_leads_to_the_same_books(seed: int) -> None:
    """A informer made from a list in any order equals the one that saw everything happen."""
    chance = random.Random(seed)
    cluster = Cluster()
    seen: list[tuple[Kind, dict[str, Any]]] = []
    for number in range(60):
        act = chance.random()
        name = f"p{chance.randrange(14)}"
        if act < 0.15:
            cluster.node(f"n{chance.randrange(3)}", str(chance.randrange(3, 6)))
        elif act < 0.3 and ("pods", name) in cluster.things:
            cluster.gone(name)
        elif ("pods", name) not in cluster.things:
            cluster.pod(
                name, str(chance.randrange(1, 3)), chance.randrange(3), labels={"applicationId": f"a{number % 4}"}
            )
        cluster.bind_all(cluster.acts())
        if chance.random() < 0.2 and cluster.things:
            plural, again = chance.choice(sorted(cluster.things))
            kind = PODS if plural == "pods" else NODES
            cluster.driver.take(Changed(kind, msgspec.convert(cluster.things[plural, again], kind.type)), 0)
    for (plural, _), thing in cluster.things.items():
        seen.append((PODS if plural == "pods" else NODES, thing))
    chance.shuffle(seen)
    fresh = Cluster()
    for kind, thing in seen:
        fresh.driver.take(Changed(kind, msgspec.convert(thing, kind.type)), 0)
    check_books(fresh.driver.scheduler)

    def books(one: Cluster) -> dict[str, Any]:
        return {
            known.name.name: (known.books, known.node)
            for known in one.driver.informer.pod_store.by_uid.values()
            if known.books is Books.PLACED and known.bound
        }

    assert books(fresh) == books(cluster)
    for node in fresh.driver.scheduler.cluster.partitions["default"].nodes.nodes:
        assert fresh.used(node) == cluster.used(node)


def test_classes_are_known() -> None:
    """A class is passed on; the two of the system itself are there anyway."""
    cluster = Cluster()
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "high", "uid": "c"}, "value": 100})
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "system-node-critical", "uid": "d"}, "value": 2000001000})
    assert cluster.acts() == []


@pytest.mark.parametrize("named", ["", "plain"])
def test_a_priority_of_0_that_the_api_server_resolved_stays(named: str) -> None:
    """Of a pod that is older than the global default, or whose class has the value 0."""
    cluster = Cluster()
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "plain", "uid": "p"}, "value": 0})
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "usual", "uid": "c"}, "value": 100, "globalDefault": True})
    cluster.node("n1", "3")
    cluster.pod("old", "3", priority=0, spec={"priorityClassName": named or None})
    cluster.pod("one", "3", priority=1)
    assert binds(cluster.acts()) == {"one": "n1"}, "1 is more than 0"
    cluster.pod("unresolved", "3", spec={"priority": None})
    apps = cluster.driver.scheduler.cluster.partitions["default"].applications.values()
    asks = {ask.spec.tags["kubernetes.io/meta/podName"]: ask.priority for app in apps for ask in app.asks.values()}
    assert asks == {"old": 0, "one": 1, "unresolved": 100}, "nothing resolved is what the default is for"


def test_a_class_protects_young_pods() -> None:
    """`fairlead.io/min-runtime` on a priority class: its pods are nobody's victims before they have run for so long."""
    cluster = Cluster()
    notes = {"fairlead.io/min-runtime": "10m"}
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "setup", "uid": "c", "annotations": notes}, "value": 5})
    known = cluster.driver.scheduler.cluster.admission.classes.get("setup")
    assert known is not None
    assert known.min_runtime_ms == 600_000
    cluster.node("n1")
    cluster.pod("young", "3", priority=5, spec={"priorityClassName": "setup"})
    cluster.bind_all(cluster.acts())
    cluster.pod("high", "3", priority=9)
    assert cluster.acts() == []
    cluster.now = 599_999
    assert cluster.acts() == []
    cluster.now = 600_000
    assert [act.pod.name for act in cluster.acts() if isinstance(act, EvictPod)] == ["young"]


@pytest.mark.parametrize("text", ["10", "", "soon", "-5m", "0s"])
def test_a_time_that_a_class_cannot_mean_protects_nobody(text: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is said, and the class counts without it."""
    cluster = Cluster()
    notes = {"fairlead.io/min-runtime": text}
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "setup", "uid": "c", "annotations": notes}, "value": 5})
    (said,) = caplog.messages
    assert said.startswith(f"priority class setup: fairlead.io/min-runtime '{text}' is no duration")
    cluster.node("n1")
    cluster.pod("young", "3", priority=5, spec={"priorityClassName": "setup"})
    cluster.bind_all(cluster.acts())
    cluster.pod("high", "3", priority=9)
    assert any(isinstance(act, EvictPod) for act in cluster.acts())


def test_after_a_restart_nobody_is_evicted_again_for_the_same_preemptor() -> None:
    """The victim is leaving and the node nominated: a fresh scheduler holds the room, and waits for it."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.node("n2")
    stop = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    leaving = "2026-01-01T00:00:30Z"
    cluster.driver = Driver(load_text(PRIORITY))
    cluster.node("n1")
    cluster.node("n2")
    cluster.pod("low", "3", 1, "n1", deletionTimestamp=leaving, status={"conditions": stop})
    cluster.pod("other", "3", 1, "n2")
    cluster.pod("high", "3", 9, status={"nominatedNodeName": "n1"})
    cluster.driver.begin(0)
    assert cluster.acts() == []
    cluster.gone("low")
    assert binds(cluster.acts()) == {"high": "n1"}


def test_a_late_word_about_a_nominated_pod_does_not_leave_its_nomination_behind() -> None:
    """It was said before the server had the nomination; then another pod gets the room."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("low", "4", 1, "n1")
    cluster.pod("high", "4", 9)
    assert [(a.pod.name, a.node) for a in cluster.acts() if isinstance(a, Nominate)] == [("high", "n1")]
    cluster.pod("high", "4", 9, labels={"of": "before"})
    cluster.pod("highest", "4", 10)
    assert {a.pod.name: a.node for a in cluster.acts() if isinstance(a, Nominate)} == {"high": "", "highest": "n1"}


def test_a_nomination_that_makes_no_sense_any_more_is_taken_back() -> None:
    """Nothing leaves the node: the pod is nominated no longer, and may preempt."""
    cluster = Cluster()
    cluster.driver = Driver(load_text(PRIORITY))
    cluster.node("n1")
    cluster.pod("high", "9", 9, status={"nominatedNodeName": "n1"})
    cluster.driver.begin(0)
    assert [(a.pod.name, a.node) for a in cluster.acts() if isinstance(a, Nominate)] == [("high", "")]


def test_a_pod_that_somebody_else_deletes_is_no_victim() -> None:
    """It goes anyway: another one would have to be stopped if it counted as staying, and it twice if not."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("low", "3", 1, "n1", deletionTimestamp="2026-01-01T00:00:30Z")
    cluster.pod("high", "3", 9)
    assert not [a for a in cluster.acts() if isinstance(a, EvictPod)]
    cluster.gone("low")
    assert binds(cluster.acts()) == {"high": "n1"}


def test_idle_work_that_was_stopped_does_not_come_back_without_a_pod() -> None:
    """The scheduler puts idle work back into its queue; on a cluster the pod is gone, and a new one is another pod."""
    cluster = Cluster(PRIORITY.replace('submitacl: "*"', 'submitacl: "*", properties: {resource.group: "true"}'))
    cluster.node("n1")
    cluster.pod("idle", "3", 1, labels={identity.IDLE: "true", "applicationId": "a"})
    cluster.pod("stays", "1", 1, labels={"applicationId": "a"})
    cluster.bind_all(cluster.acts())
    cluster.pod("high", "3", 9)
    assert [a.pod.name for a in cluster.acts() if isinstance(a, EvictPod)] == ["idle"]
    cluster.gone("idle")
    cluster.bind_all(cluster.acts())
    assert cluster.used("n1") == 4000
    cluster.pod("high", "3", 9, node="n1", status={"phase": "Succeeded"})
    assert cluster.acts() == []
    assert cluster.used("n1") == 1000
    assert not cluster.driver.scheduler.cluster.partitions["default"].applications["a"].pending_count


def test_a_pod_that_pauses_is_not_placed_because_something_is_written_on_it() -> None:
    """What is told of the refusal is such a change: it would be tried again at once, for ever."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("a")
    assert binds(cluster.acts()) == {"a": "n1"}
    cluster.driver.bind_failed("u-a", "n1", "no", 0)
    cluster.pod("a", status={"conditions": [{"type": "PodScheduled", "status": "False"}]})
    assert binds(cluster.acts()) == {}
    cluster.pod("b")
    assert binds(cluster.acts()) == {"b": "n1"}
    cluster.driver.try_again("u-a", 0)
    assert binds(cluster.acts()) == {"a": "n1"}


def test_a_pod_that_pauses_and_is_bound_by_somebody_else_is_in_the_books() -> None:
    """Its node is what counts, whatever it waited for."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("a", "3")
    cluster.acts()
    cluster.driver.bind_failed("u-a", "n1", "no", 0)
    cluster.pod("a", "3", node="n1")
    cluster.acts()
    assert cluster.used("n1") == 3000


def test_a_pod_that_runs_is_not_told_that_it_has_no_node() -> None:
    """After a restart it may be the first of its application, and its gang cannot be read: its room counts all the
    same, and nobody takes it for unschedulable.
    """
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("runs", "3", node="n1", annotations={identity.TASK_GROUPS: "[{"})
    acts = cluster.acts()
    assert [act for act in acts if isinstance(act, Explain)] == []
    cluster.pod("other", "2")
    assert binds(cluster.acts()) == {}


def test_a_server_that_was_set_back_is_believed() -> None:
    """Restored from a backup, it lists older versions: a pod that had a node there may have none again."""
    cluster = Cluster()
    cluster.node("n1")
    for name in ("ours", "waits"):
        cluster.pod(name, "3")
        cluster.bind_all(cluster.acts())
    cluster.pod("theirs", "1", node="n1", spec={"schedulerName": "default-scheduler"})
    assert (binds(cluster.acts()), cluster.used("n1")) == ({}, 3000)
    cluster.version = 0
    cluster.pod("ours", "3")
    cluster.pod("theirs", "1", spec={"schedulerName": "default-scheduler"})
    cluster.pod("waits", "1")
    assert binds(cluster.acts()) == {"ours": "n1", "waits": "n1"}
    assert cluster.used("n1") == 4000
