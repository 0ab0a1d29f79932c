"""A scheduler that begins with what another one has left, with the real scheduler behind a driver."""

from __future__ import annotations

import pytest
from driven_cluster import Cluster, binds
from driven_jobs import QUEUES, Jobs, at_work, end, records, suspensions

from fairlead.config import load_text
from fairlead.core.model.specs import TAG_GANG_COMES_AGAIN
from fairlead.kubernetes.acts import Bind, CreatePlaceholder, DeletePod, EvictPod, Explain
from fairlead.kubernetes.bodies import unscheduled
from fairlead.kubernetes.explainer import Explainer
from fairlead.kubernetes.kinds import PODS
from fairlead.kubernetes.translate import identity

GANG = '[{"name": "w", "minMember": 2, "minResource": {"cpu": "2"}}]'
SMALLER = QUEUES.replace("vcore: 4", "vcore: 3")


def member(cluster: Cluster, name: str, style: str = "Soft", **notes: str) -> None:
    gang = {identity.TASK_GROUPS: GANG, identity.PARAMETERS: f"gangSchedulingStyle={style}"}
    words = {identity.TASK_GROUP_NAME: "w", **(notes or gang)}
    cluster.pod(name, "2", labels={"applicationId": "job", "queue": "root.a"}, annotations=words)


def gang(size: int, style: str = "Soft") -> Cluster:
    """A gang with room on nodes for so many of its two members; its placeholders have theirs."""
    cluster = Cluster(QUEUES)
    for number in range(size):
        cluster.node(f"n{number}", "2")
    for number in range(size, 2):
        cluster.full_node(f"n{number}", "2")
    for number in range(2):
        member(cluster, f"m{number}", style)
    for act in cluster.acts():
        if isinstance(act, CreatePlaceholder):
            member(cluster, act.name, **{identity.PLACEHOLDER: "true"})
    cluster.bind_all(cluster.acts())
    return cluster


def used(cluster: Cluster, queue: str) -> int:
    root = cluster.driver.scheduler.cluster.partitions["default"].root
    return root.children[queue].allocated.get("vcore", 0)


def until_it_runs(cluster: Cluster) -> None:
    """A gang comes together, and its members take the places of their placeholders."""
    for _ in range(3):
        acts = cluster.acts()
        cluster.bind_all(acts)
        for act in acts:
            if isinstance(act, DeletePod):
                cluster.gone(act.pod.name)


def test_a_gang_that_runs_is_in_its_queue_though_its_maximum_was_lowered_below_it() -> None:
    cluster = gang(2)
    until_it_runs(cluster)
    assert cluster.things["pods", "m0"]["spec"]["nodeName"]
    cluster.restarted(SMALLER)
    assert cluster.acts() == []
    assert used(cluster, "a") == 4000


def test_a_gang_that_its_queue_takes_no_more_keeps_no_room() -> None:
    """Of its placeholders none is made, and those with a node go; with a queue that takes it they are made again."""
    cluster = gang(1)
    cluster.restarted(SMALLER)
    acts = cluster.acts()
    assert not [act for act in acts if isinstance(act, CreatePlaceholder)]
    gone = [act.pod.name for act in acts if isinstance(act, DeletePod)]
    assert len(gone) == 1
    cluster.gone(gone[0])
    assert cluster.acts() == []
    cluster.driver.configure(load_text(QUEUES), cluster.now)
    assert [act.name for act in cluster.acts() if isinstance(act, CreatePlaceholder)] == gone


def test_what_runs_is_in_its_queue_though_an_older_pod_of_its_application_waits() -> None:
    """The older one declares the application, which its queue would not take any more; both are of it."""
    cluster = gang(2)
    for _ in range(3):
        acts = cluster.acts()
        cluster.bind_all([act for act in acts if not isinstance(act, Bind) or act.pod.name != "m0"])
        for act in acts:
            if isinstance(act, DeletePod):
                cluster.gone(act.pod.name)
    cluster.restarted(SMALLER)
    assert used(cluster, "a") == 2000
    assert not [act for act in cluster.acts() if isinstance(act, Bind | CreatePlaceholder)]
    assert list(cluster.driver.informer.waiting) == ["u-m0"]
    cluster.restarted(QUEUES)
    assert binds(cluster.acts()).keys() == {"m0"}


@pytest.mark.parametrize("said", ["m0", "m1"])
def test_a_gang_that_had_to_be_whole_and_has_failed_is_not_tried_again(said: str) -> None:
    """As with YuniKorn, which ends its pods: nothing of it is placed before all were made anew. One of them says it."""
    cluster = gang(1, style="Hard")
    cluster.now = 16 * 60_000
    acts = cluster.acts()
    for act in acts:
        if isinstance(act, DeletePod):
            cluster.gone(act.pod.name)
    told = next(act for act in acts if isinstance(act, Explain) and act.pod.name == said)
    assert told.message == "application job has failed: its gang (Hard) did not get all of its room in time"
    cluster.things["pods", said]["status"] = unscheduled(told, "")["status"]
    for config in (QUEUES, SMALLER):
        cluster.restarted(config)
        cluster.node("n1", "8")
        acts = cluster.acts()
        assert not [act for act in acts if isinstance(act, Bind | CreatePlaceholder)]
        assert {act.pod.name: act.message for act in acts if isinstance(act, Explain)}["m1"] == told.message
    for name in ("m0", "m1"):
        cluster.gone(name)
    cluster.restarted()
    member(cluster, "m0", style="Hard")
    assert len([act for act in cluster.acts() if isinstance(act, CreatePlaceholder)]) == 2


def given_up(only: str = "") -> Cluster:
    """A soft gang with room for one of its two, of which the time is over; its members wait for nodes that are full.
    The API server has heard what was said of this one, or of both.
    """
    cluster = gang(1)
    cluster.full_node("n2", "2")
    cluster.now = 16 * 60_000
    for act in cluster.acts():
        if isinstance(act, DeletePod):
            cluster.pod("taken", "2", node="n0")
            cluster.gone(act.pod.name)
    assert binds(cluster.acts()) == {}
    told(cluster, only)
    return cluster


def told(cluster: Cluster, only: str = "") -> None:
    """The API server has what is said of the pods that wait, or of this one."""
    say: list[Explain] = []
    explainer = Explainer(cluster.driver, lambda act: say.append(act) if isinstance(act, Explain) else None)
    for second in range(3):
        explainer.go_on(cluster.now + second * 1000)
    for act in [each for each in say if each.pod.name in (only or each.pod.name)]:
        body, pod = unscheduled(act, ""), cluster.things["pods", act.pod.name]
        pod["status"] = body["status"]
        pod["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])


@pytest.mark.parametrize("only", ["m0", "m1", ""])
def test_a_soft_gang_that_was_given_up_is_not_waited_for_again(only: str) -> None:
    """It was, if nothing of it ran: its members had to wait for room for all of them, another quarter of an hour."""
    cluster = given_up(only)
    cluster.restarted(QUEUES)
    assert not [act for act in cluster.acts() if isinstance(act, CreatePlaceholder)]
    cluster.gone("taken")
    assert len(binds(cluster.acts())) == 1


@pytest.mark.parametrize("comes_first", [False, True])
def test_a_placeholder_that_is_still_there_when_its_gang_was_given_up_goes(comes_first: bool) -> None:
    """The scheduler ended before it said so. It may be heard of before the member which says that."""
    cluster = given_up("m0" if comes_first else "")
    if comes_first:
        last = cluster.things.pop(("pods", "m0"))
        cluster.things["pods", "m0"] = last
        last["metadata"]["annotations"][identity.ARRIVAL] = "999"
    cluster.gone("taken")
    for name, node in (("tg-job-w-0", "n0"), ("tg-job-w-1", "")):
        notes = {identity.TASK_GROUP_NAME: "w", identity.PLACEHOLDER: "true"}
        cluster.pod(name, "2", node=node, labels={"applicationId": "job", "queue": "root.a"}, annotations=notes)
    cluster.restarted(QUEUES)
    gone = {act.pod.name for act in cluster.acts() if isinstance(act, DeletePod)}
    assert sorted(gone) == ["tg-job-w-0", "tg-job-w-1"]
    assert cluster.used("n0") == 2000
    for name in sorted(gone):
        cluster.gone(name)
    assert len(binds(cluster.acts())) == 1


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_what_is_left_of_a_gang_that_has_begun_is_not_held_back_for_it_again(style: str) -> None:
    """All that ran of it has ended: what is left had to wait for room for a whole gang."""
    cluster = gang(2, style)
    until_it_runs(cluster)
    member(cluster, "m2", style)
    assert binds(cluster.acts()) == {}
    told(cluster)
    for number in range(2):
        cluster.gone(f"m{number}")
        cluster.pod(f"taken{number}", "2", node=f"n{number}")
    cluster.restarted(QUEUES)
    assert not [act for act in cluster.acts() if isinstance(act, CreatePlaceholder)]
    cluster.gone("taken0")
    assert binds(cluster.acts()) == {"m2": "n0"}


def test_pods_made_from_those_of_a_gang_that_was_given_up_are_a_gang() -> None:
    """With all that was written on them, but another identity."""
    cluster = given_up()
    manifest = cluster.things["pods", "m0"]
    for name in ("m0", "m1"):
        cluster.gone(name)
    manifest["metadata"]["uid"], manifest["status"] = "another", {}
    cluster.put(PODS, manifest)
    assert len([act for act in cluster.acts() if isinstance(act, CreatePlaceholder)]) == 2


def let_go(pods: int) -> Jobs:
    """A job that was let go when both of its pods had room; so many of them are there, and none has a node."""
    cluster = Jobs(QUEUES)
    for number in range(2):
        cluster.node(f"n{number}", "2")
    cluster.job("train")
    assert suspensions(cluster.acts()) == {"train": False}
    cluster.job("train", suspend=False)
    for number in range(pods):
        cluster.member("train", number)
    return cluster


@pytest.mark.parametrize("pods", range(3))
def test_a_job_that_was_let_go_starts_as_a_whole_whatever_pods_it_has(pods: int) -> None:
    """Where its room is taken meanwhile none of its pods gets a part of it, nor does what comes later."""
    cluster = let_go(pods)
    cluster.pod("taken", "2", node="n1")
    cluster.restarted(QUEUES)
    cluster.pod("later", "2", labels={"applicationId": "later"})
    acts = cluster.acts()
    assert binds(acts) == {}
    told = {act.message for act in acts if isinstance(act, Explain) and act.pod.name != "later"}
    assert [*told] == ["the gang of application default-train-j-train reserves its room: 0 of 2 have it"][:pods]
    cluster.gone("taken")
    acts = cluster.acts()
    assert suspensions(acts) == {}
    for number in range(pods, 2):
        cluster.member("train", number)
    acts += cluster.acts()
    assert binds(acts).keys() == {"train-0", "train-1"}
    assert not [act for act in acts if isinstance(act, EvictPod)]
    cluster.bind_all(acts)
    cluster.acts()
    assert cluster.used("n0") == cluster.used("n1") == 2000


def test_pods_of_a_job_that_lacks_its_room_anew_call_for_nodes() -> None:
    """An autoscaler sees what keeps its room no more than any other thing that is no pod."""
    cluster = let_go(2)
    cluster.pod("taken", "2", node="n1")
    cluster.restarted(QUEUES)
    told = [act for act in cluster.acts() if isinstance(act, Explain)]
    words = [unscheduled(act, "")["status"]["conditions"][0]["reason"] for act in told]
    assert words == ["Unschedulable"] * 2


def test_a_job_that_was_let_go_and_is_suspended_again_waits_for_its_room_once() -> None:
    cluster = let_go(1)
    cluster.pod("taken", "2", node="n1")
    cluster.restarted(QUEUES)
    cluster.acts()
    cluster.job("train", suspend=True)
    assert cluster.waiting() == 0
    cluster.gone("train-0")
    cluster.gone("taken")
    assert suspensions(cluster.acts()) == {"train": False}


def test_a_job_that_was_let_go_and_of_which_a_part_runs_goes_on() -> None:
    """What does not run yet waits in line as a plain pod, as before."""
    cluster = let_go(2)
    cluster.pod("taken", "2", node="n1")
    cluster.member("train", 0, node="n0")
    cluster.restarted(QUEUES)
    assert cluster.acts() == []
    cluster.node("n2", "2")
    assert binds(cluster.acts()) == {"train-1": "n2"}


def test_a_job_whose_only_pod_ends_while_everything_is_listed_goes_on() -> None:
    """It was taken for one that starts anew though it kept the room of that pod: the next change of the job had its
    next pod thrown out of the books, and what came after that never let in.
    """
    cluster = Jobs(QUEUES)
    cluster.node("n0", "2")
    cluster.job("train", 1, suspend=False, completions=9)
    cluster.member("train", 0, node="n0")
    cluster.restarted(QUEUES, lambda: end(cluster, "train-0"))
    for number in (1, 2):
        cluster.gone(f"train-{number - 1}")
        cluster.member("train", number)
        acts = cluster.acts()
        assert binds(acts) == {f"train-{number}": "n0"}
        cluster.job("train", 1, suspend=False, completions=9, status={"succeeded": number})
        assert cluster.acts() == []
        cluster.bind_all(acts)
        end(cluster, f"train-{number}")


def test_a_job_that_was_let_go_and_is_larger_than_all_nodes_runs_as_far_as_there_is_room() -> None:
    """Somebody let it go; as a whole it could never start."""
    cluster = let_go(2)
    cluster.job("large", 3, suspend=False)
    for number in range(3):
        cluster.member("large", number)
    cluster.job("train", 0, suspend=False)
    for number in range(2):
        cluster.gone(f"train-{number}")
    cluster.restarted(QUEUES)
    assert len(binds(cluster.acts())) == 2


@pytest.mark.parametrize("restarts", range(3))
def test_a_job_that_was_let_go_and_becomes_larger_than_all_nodes_runs_as_far_as_there_is_room(restarts: int) -> None:
    """However often the scheduler is restarted before the node is smaller, or after that: it waited for such nodes for
    ever after one restart, and ran after another.
    """
    cluster = let_go(2)
    for number in range(2):
        cluster.pod(f"taken{number}", "2", node=f"n{number}")
    if restarts:
        cluster.restarted(QUEUES)
    assert binds(cluster.acts()) == {}
    cluster.node("n1", "1")
    assert binds(cluster.acts()) == {}
    if restarts == 2:
        cluster.restarted(QUEUES)
    for number in range(2):
        cluster.gone(f"taken{number}")
    assert binds(cluster.acts()) == {"train-0": "n0"}


def test_a_job_that_was_let_go_and_gave_its_room_back_as_nodes_became_too_small_runs_as_far_as_there_is_room() -> None:
    cluster = let_go(2)
    cluster.pod("taken", "2", node="n1")
    cluster.restarted(QUEUES)
    cluster.acts()
    cluster.now = 16 * 60_000
    cluster.acts()
    (uid,) = cluster.driver.informer.workloads.pauses
    cluster.gone("taken")
    cluster.node("n1", "1")
    assert binds(cluster.acts()) == {}
    cluster.driver.try_again(uid, cluster.now)
    assert len(binds(cluster.acts())) == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_job_that_somebody_lets_go_and_that_its_queue_never_takes_runs_as_far_as_it_may(restarted: bool) -> None:
    """Its queue has 4 CPUs at most, and it would start with 6."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "8")
    cluster.job("train", 3, queue="root.a")
    assert not suspensions(cluster.acts())
    cluster.job("train", 3, queue="root.a", suspend=False)
    for number in range(3):
        cluster.member("train", number)
    if restarted:
        cluster.restarted(QUEUES)
    assert len(binds(cluster.acts())) == 2


def test_room_that_a_job_was_let_go_for_is_given_back_after_a_while_and_tried_for_again() -> None:
    cluster = let_go(2)
    cluster.pod("taken", "2", node="n1")
    cluster.restarted(QUEUES)
    cluster.acts()
    cluster.now = 16 * 60_000
    assert records(cluster.acts(), "GaveUp")
    (uid,) = cluster.driver.informer.workloads.pauses
    cluster.pod("other", "2")
    acts = cluster.acts()
    assert binds(acts) == {"other": "n0"}
    cluster.bind_all(acts)
    for name in ("other", "taken"):
        cluster.gone(name)
    cluster.driver.try_again(uid, cluster.now)
    assert binds(cluster.acts()).keys() == {"train-0", "train-1"}


@pytest.mark.parametrize("is_restarted", [False, True])
def test_forecasts_know_with_how_many_pods_a_job_goes_on(is_restarted: bool) -> None:
    """It is suspended with fewer, and comes again as a whole."""
    cluster = at_work(2)
    if is_restarted:
        cluster.restarted(QUEUES)
        cluster.acts()
    applications = cluster.driver.scheduler.cluster.partitions["default"].applications
    (app,) = [each for each in applications.values() if any(key.startswith("u-train") for key in each.asks)]
    assert app.spec.tags[TAG_GANG_COMES_AGAIN] == "2"
