"""What the webhook writes into pods and templates, what it refuses, and how it says so."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest

from fairlead.kubernetes.admission import pods
from fairlead.kubernetes.admission.pods import AdmissionRules, Applications
from fairlead.kubernetes.admission.review import Question, UnreadableReview, Verdict, answer_to, pointer, question_of
from fairlead.kubernetes.admission.server import review_queue_file

USER_INFO = "yunikorn.apache.org/user.info"
APP_ID = "yunikorn.apache.org/app-id"
QUEUE = "yunikorn.apache.org/queue"
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
ADA = '{"user":"ada","groups":["staff","system:authenticated"]}'


def a_pod(labels: dict[str, str] | None = None, notes: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A pod's manifest; `owner` makes a controller of that name its owner, the rest are fields of its spec."""
    meta: dict[str, Any] = {"generateName": "p-"}
    if labels is not None:
        meta["labels"] = labels
    if notes is not None:
        meta["annotations"] = notes
    if "owner" in more:
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": more.pop("owner"),
            "uid": "1234567890",
            "controller": True,
        }
        meta["ownerReferences"] = [owner]
    return {"metadata": meta, "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c"}], **more}}


def ask(thing: Any, kind: str = "Pod", operation: str = "CREATE", old: Any = None, **who: Any) -> Question:
    """The question as it comes from the API server."""
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "0f6a-77",
            "kind": {"group": "", "version": "v1", "kind": kind},
            "name": who.get("name", ""),
            "namespace": who.get("namespace", "lab"),
            "operation": operation,
            "userInfo": {
                "username": who.get("user", "ada"),
                "groups": who.get("groups", ["staff", "system:authenticated"]),
            },
            "object": copy.deepcopy(thing),
            "oldObject": old,
        },
    }
    return question_of(json.dumps(review).encode())


def patched(thing: dict[str, Any], verdict: Verdict) -> dict[str, Any]:
    """The object as the API server goes on with it: the patch of the answer applied as RFC 6902 says."""
    assert verdict.allowed, verdict.message
    answer = json.loads(answer_to(ask(thing), verdict))["response"]
    result = copy.deepcopy(thing)
    for change in json.loads(base64.b64decode(answer.get("patch", "W10="))):
        assert change["op"] == "add"
        *above, last = [part.replace("~1", "/").replace("~0", "~") for part in change["path"].split("/")[1:]]
        place = result
        for name in above:
            place = place[name]
        place[last] = change["value"]
    return result


def review(
    thing: dict[str, Any], rules: AdmissionRules | None = None, notes: dict[str, str] | None = None, **how: Any
) -> Any:
    """The pod after the review."""
    return patched(thing, pods.review(ask(thing, **how), rules or AdmissionRules(), notes or {}))


# -- which pods -------------------------------------------------------------------------------------------------------


def test_a_pod_without_a_scheduler_is_completed() -> None:
    """It gets the scheduler, an application and the name of whoever submitted it; what it has stays."""
    found = review(a_pod(labels={"app": "web"}))
    assert found["spec"]["schedulerName"] == "fairlead"
    assert found["metadata"]["labels"] == {"app": "web", APP_ID: "yunikorn-lab-autogen"}
    assert json.loads(found["metadata"]["annotations"][USER_INFO]) == json.loads(ADA)


def test_deciding_twice_changes_nothing_more() -> None:
    """The API server may ask again about what was completed before."""
    rules = AdmissionRules(applications=Applications.POD)
    once = review(a_pod(), rules, {QUEUE: "root.lab"})
    assert review(once, rules, {QUEUE: "root.lab"}) == once


@pytest.mark.parametrize(
    ("more", "namespace", "notes", "ours"),
    [
        ({}, "lab", {}, True),
        ({}, "kube-system", {}, False),
        ({}, "old-lab", {}, False),
        ({}, "elsewhere", {}, False),
        ({}, "elsewhere", {"fairlead.io/enabled": "true"}, True),
        ({}, "lab", {"fairlead.io/enabled": "false"}, False),
        ({}, "lab", {"yunikorn.apache.org/namespace.enableYuniKorn": "false"}, False),
        ({}, "lab", {"fairlead.io/enabled": "perhaps"}, True),
        ({"schedulerName": "fairlead"}, "elsewhere", {}, True),
        ({"schedulerName": "other"}, "lab", {}, False),
    ],
)
def test_namespaces_take_part_by_pattern_and_by_their_own_word(
    more: dict[str, str], namespace: str, notes: dict[str, str], ours: bool
) -> None:
    """A pod that names a scheduler keeps it; a namespace's own word counts before the patterns."""
    rules = AdmissionRules(namespaces=("*lab", "kube-*"), excluded=("kube-*", "old-*"))
    found = review(a_pod(**more), rules, notes, namespace=namespace)
    assert (found["spec"]["schedulerName"] == "fairlead") is ours
    assert (USER_INFO in found["metadata"].get("annotations", {})) is ours


def test_pods_that_a_node_made_are_left_alone() -> None:
    """A mirror pod only shows what runs already."""
    pod = a_pod(notes={"kubernetes.io/config.mirror": "x"})
    assert review(pod) == pod


# -- where it belongs -------------------------------------------------------------------------------------------------


def test_the_queue_of_the_namespace_is_written_unless_the_pod_names_one() -> None:
    """As a label; a path that is no valid label becomes an annotation."""
    deep = "root." + "a" * 70
    assert review(a_pod(), notes={QUEUE: "root.lab"})["metadata"]["labels"][QUEUE] == "root.lab"
    assert review(a_pod(), notes={QUEUE: deep})["metadata"]["annotations"][QUEUE] == deep
    assert QUEUE not in review(a_pod(labels={"queue": "root.own"}), notes={QUEUE: "root.lab"})["metadata"]["labels"]
    own = review(a_pod(notes={QUEUE: "root.own"}), notes={QUEUE: "root.lab"})
    assert QUEUE not in own["metadata"]["labels"]


@pytest.mark.parametrize(
    ("how", "owner", "name"),
    [
        ("namespace", "sweep", "yunikorn-lab-autogen"),
        ("owner", "sweep", "lab-sweep-12345678"),
        ("owner", "", "lab-0f6a-77"),
        ("pod", "sweep", "lab-0f6a-77"),
        ("none", "sweep", None),
    ],
)
def test_the_application_follows_the_rule_of_the_namespace(how: str, owner: str, name: str | None) -> None:
    """One for the namespace, for the owner, for the pod, or none, by rule or by the namespace's own word."""
    pod = a_pod(owner=owner) if owner else a_pod()
    by_rule = review(pod, AdmissionRules(applications=Applications(how)))
    by_note = review(pod, AdmissionRules(), {"fairlead.io/applications": how})
    assert by_rule["metadata"].get("labels", {}).get(APP_ID) == name
    assert by_note == by_rule


def test_yunikorns_word_for_generated_applications_is_understood() -> None:
    """`false` writes none, `true` writes one also where the rule says none."""
    word = "yunikorn.apache.org/namespace.generateAppId"
    assert "labels" not in review(a_pod(), notes={word: "false"})["metadata"]
    rules = AdmissionRules(applications=Applications.NONE)
    assert review(a_pod(), rules, {word: "true"})["metadata"]["labels"] == {APP_ID: "yunikorn-lab-autogen"}


@pytest.mark.parametrize("labels", [{"applicationId": "mine"}, {APP_ID: "mine"}, {"spark-app-selector": "mine"}])
def test_an_application_that_the_pod_names_stays(labels: dict[str, str]) -> None:
    """Whichever of YuniKorn's names it uses."""
    assert review(a_pod(labels=labels))["metadata"]["labels"] == labels


def test_long_names_fit_into_a_label_and_stay_apart() -> None:
    """Two long names with one beginning remain two."""
    rules = AdmissionRules(applications=Applications.OWNER)
    names = [review(a_pod(owner="x" * 60 + tail), rules)["metadata"]["labels"][APP_ID] for tail in "ab"]
    assert [len(name) <= 63 for name in names] == [True, True]
    assert names[0] != names[1]


# -- who submitted it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(set(pods.TEMPLATES) - {"Pod"}))
def test_the_submitter_is_written_into_templates(kind: str) -> None:
    """What a controller makes later brings him along; scheduler and application are the pod's own matter."""
    thing: dict[str, Any] = {"spec": {"containers": []}}
    for name in reversed(pods.TEMPLATES[kind]):
        thing = {name: thing}
    found = review({"metadata": {"name": "d"}, **thing}, kind=kind)
    for name in pods.TEMPLATES[kind]:
        found = found[name]
    assert json.loads(found["metadata"]["annotations"][USER_INFO])["user"] == "ada"
    assert "schedulerName" not in found["spec"]
    assert "labels" not in found["metadata"]


def test_a_job_that_is_to_start_as_a_whole_is_suspended_and_ours() -> None:
    """By its label, also in a namespace that takes no part; one that names another scheduler keeps its name."""
    a_job = {
        "metadata": {"name": "train", "labels": {"fairlead.io/queue": "root.a"}},
        "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
    }
    stored = review(copy.deepcopy(a_job), kind="Job", namespace="kube-system")
    assert stored["spec"]["suspend"] is True
    assert stored["spec"]["template"]["spec"]["schedulerName"] == "fairlead"
    a_job["spec"]["template"]["spec"]["schedulerName"] = "other"
    stored = review(copy.deepcopy(a_job), kind="Job")
    assert "suspend" not in stored["spec"]


def test_a_pod_of_a_group_or_of_a_known_owner_keeps_its_application() -> None:
    """Another one is not written into it: the scheduler knows it by that."""
    for labels in ({"scheduling.x-k8s.io/pod-group": "ring"}, {"ray.io/cluster": "c"}):
        assert APP_ID not in review(a_pod(labels))["metadata"]["labels"]


def test_pods_of_controllers_keep_the_submitter_of_their_template() -> None:
    """And where the template names none, nobody is made up."""
    told = review(a_pod(notes={USER_INFO: ADA}), user=JOB_CONTROLLER)
    assert told["metadata"]["annotations"][USER_INFO] == ADA
    assert "annotations" not in review(a_pod(), user=JOB_CONTROLLER)["metadata"]


def test_nobody_submits_in_the_name_of_another() -> None:
    """Refused with a sentence that says what to do; also for more groups than one has."""
    for claim in ('{"user":"root"}', '{"user":"ada","groups":["admins"]}'):
        verdict = pods.review(ask(a_pod(notes={USER_INFO: claim})), AdmissionRules(), {})
        assert (verdict.allowed, verdict.code) == (False, 403)
        assert "leave out the annotation" in verdict.message


def test_a_right_claim_about_oneself_stays() -> None:
    """With fewer groups than one has, too."""
    claim = '{"user":"ada","groups":["staff"]}'
    assert review(a_pod(notes={USER_INFO: claim}))["metadata"]["annotations"][USER_INFO] == claim


@pytest.mark.parametrize(
    "rules", [AdmissionRules(trusted_users=("system:serviceaccount:spark:*",)), AdmissionRules(trusted_groups=("ops",))]
)
def test_trusted_users_and_groups_name_the_submitter(rules: AdmissionRules) -> None:
    """An operator submits for its users; what cannot be read is refused for it as well."""
    who = {"user": "system:serviceaccount:spark:operator", "groups": ["ops"]}
    assert review(a_pod(notes={USER_INFO: ADA}), rules, **who)["metadata"]["annotations"][USER_INFO] == ADA
    verdict = pods.review(ask(a_pod(notes={USER_INFO: "ada"}), **who), rules, {})
    assert not verdict.allowed
    assert "must look like" in verdict.message


def test_the_submitter_cannot_be_changed_later() -> None:
    """Not by somebody else; leaving him out puts him back; leaving him alone is no change."""
    old, rules = a_pod(notes={USER_INFO: ADA}), AdmissionRules()
    bob = {"user": "bob", "groups": ["staff"], "operation": "UPDATE", "old": old}
    changed = a_pod(notes={USER_INFO: '{"user":"carol"}'}, schedulerName="fairlead")
    assert not pods.review(ask(changed, **bob), rules, {}).allowed
    assert review(a_pod(notes={"other": "x"}), **bob)["metadata"]["annotations"] == {"other": "x", USER_INFO: ADA}
    assert review(old, **bob) == old
    assert review(a_pod(), **{**bob, "old": a_pod()}) == a_pod()


def test_nobody_takes_another_name_on_a_detour() -> None:
    """Not by way of another scheduler: what is not ours yet is guarded, and gets its submitter when it becomes ours."""
    rules, forged = AdmissionRules(), {USER_INFO: '{"user":"root"}'}
    assert not pods.review(ask(a_pod(notes=forged, schedulerName="other")), rules, {}).allowed
    plain, bob = a_pod(schedulerName="other"), {"user": "bob", "groups": [], "operation": "UPDATE"}
    assert review(plain) == plain
    ours = review(a_pod(schedulerName="fairlead"), **bob, old=plain)
    assert json.loads(ours["metadata"]["annotations"][USER_INFO]) == {"user": "bob", "groups": []}


def test_users_are_left_alone_on_demand() -> None:
    """`--no-users`: nothing is written, nothing refused."""
    rules = AdmissionRules(write_users=False)
    found = review(a_pod(notes={USER_INFO: '{"user":"root"}'}), rules)
    assert found["metadata"]["annotations"] == {USER_INFO: '{"user":"root"}'}
    assert found["spec"]["schedulerName"] == "fairlead"


# -- words ------------------------------------------------------------------------------------------------------------


def test_a_gang_that_cannot_be_read_is_warned_of() -> None:
    """Whoever submits it sees it at once; the pod is stored all the same."""
    verdict = pods.review(ask(a_pod(notes={"yunikorn.apache.org/task-groups": '[{"name":"g"}]'})), AdmissionRules(), {})
    assert verdict.allowed
    assert "fairlead cannot schedule this: annotation yunikorn.apache.org/task-groups" in verdict.warnings[0]
    assert json.loads(answer_to(ask({}), verdict))["response"]["warnings"] == list(verdict.warnings)


def test_other_kinds_parts_and_acts_are_allowed_as_they_are() -> None:
    """Whatever a configuration sends by mistake."""
    for question in (
        ask({}, kind="Service"),
        ask(None, operation="DELETE"),
        ask({"spec": {}}, kind="CronJob"),
        ask([]),
    ):
        assert pods.review(question, AdmissionRules(), {}) == Verdict()


def test_a_pod_that_makes_no_sense_is_refused_with_the_field() -> None:
    """The API server would refuse it as well, later."""
    verdict = pods.review(ask(a_pod(priority="high")), AdmissionRules(), {})
    assert (verdict.allowed, verdict.code) == (False, 422)
    assert "priority" in verdict.message


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "no AdmissionReview"),
        (b"[" * 100_000, "no AdmissionReview"),
        (b'{"apiVersion":"admission.k8s.io/v1beta1"}', "v1beta1"),
        (b'{"apiVersion":"admission.k8s.io/v1"}', "no request"),
    ],
)
def test_a_body_that_is_no_review_is_refused(body: bytes, word: str) -> None:
    """With what is wrong with it."""
    with pytest.raises(UnreadableReview, match=word):
        question_of(body)


def test_names_are_escaped_in_patches() -> None:
    """As JSON pointers want it."""
    assert pointer(("metadata", "a/b~c")) == "/metadata/a~1b~0c"


# -- the queue file ---------------------------------------------------------------------------------------------------

GOOD = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: lab}]}]}]"


def check(data: Any, name: str = "queues", namespace: str = "fairlead") -> Verdict:
    """The verdict on a ConfigMap."""
    thing = {"metadata": {"name": name}, "data": data}
    question = ask(thing, kind="ConfigMap", operation="UPDATE", namespace=namespace, name=name)
    return review_queue_file(question, "fairlead/queues")


def test_a_good_queue_file_is_stored() -> None:
    """Without a word."""
    assert check({"queues.yaml": GOOD}) == Verdict()


@pytest.mark.parametrize("text", ["", GOOD.replace("name: default", "name: gpu")])
def test_a_queue_file_with_which_no_scheduler_starts_is_not_stored(text: str) -> None:
    """It has nothing in it, or not the partition of the cluster."""
    assert text != GOOD
    verdict = check({"queues.yaml": text})
    assert (verdict.allowed, verdict.code) == (False, 422)


def test_a_wrong_queue_file_is_refused_with_all_errors() -> None:
    """Each with its place."""
    verdict = check({"queues.yaml": GOOD.replace("name: lab", "name: 'l b', wieght: 3")})
    assert (verdict.allowed, verdict.code) == (False, 422)
    assert verdict.message.startswith("the queue file cannot be used:\nqueues.yaml:1:")
    assert "wieght" in verdict.message
    assert verdict.message.count("\n") == 2


@pytest.mark.parametrize("data", [None, {}, {"queue.yaml": GOOD}])
def test_a_configmap_without_the_key_is_refused(data: Any) -> None:
    """The scheduler would find no queues there."""
    assert "needs the key queues.yaml" in check(data).message


def test_other_configmaps_are_none_of_our_business() -> None:
    """By name and by namespace."""
    assert check({}, name="other").allowed
    assert check({}, namespace="other").allowed


KUEUE_QUEUE = {"kueue.x-k8s.io/queue-name": "research"}


@pytest.mark.parametrize(
    ("kind", "labels", "says"),
    [
        ("Pod", KUEUE_QUEUE, "label queue of the pod names its queue"),
        ("Job", KUEUE_QUEUE, "with label fairlead.io/queue fairlead starts it as a whole, in that queue"),
        ("Job", {"kueue.x-k8s.io/priority-class": "high"}, "with label fairlead.io/queue fairlead starts it"),
        ("Job", {**KUEUE_QUEUE, "fairlead.io/queue": "root.research"}, ""),
        ("Pod", {**KUEUE_QUEUE, "kueue.x-k8s.io/managed": "true"}, ""),
        ("Pod", {**KUEUE_QUEUE, "queue": "root.research"}, ""),
        ("Pod", {"app": "train"}, ""),
    ],
)
def test_a_label_of_kueue_is_said_to_mean_nothing_here(kind: str, labels: dict[str, str], says: str) -> None:
    """A job with one stayed suspended, and a pod started in another queue; nothing said why."""
    thing: dict[str, Any] = a_pod(labels)
    if kind == "Job":
        thing = {"metadata": {"name": "train", "labels": labels}, "spec": {"suspend": True, "template": a_pod()}}
    warnings = pods.review(ask(thing, kind), AdmissionRules(), {}).warnings
    assert len(warnings) == bool(says)
    for told in warnings:
        assert told.startswith(f"fairlead does not look at label {next(iter(labels))}: {says}")
    assert pods.review(ask(thing, kind, "UPDATE", old=thing), AdmissionRules(), {}).warnings == ()


@pytest.mark.parametrize("scheduler", ["another", "default-scheduler"])
def test_a_label_of_kueue_on_what_is_not_ours_is_not_spoken_of(scheduler: str) -> None:
    rules = AdmissionRules(excluded=("lab",))
    assert pods.review(ask(a_pod(KUEUE_QUEUE, schedulerName=scheduler)), rules, {}).warnings == ()
