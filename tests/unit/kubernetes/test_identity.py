"""Identity and namespaces: whose a pod is, by YuniKorn's words, in YuniKorn's order."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from fairlead.kubernetes.objects import Pod
from fairlead.kubernetes.translate import cluster, identity

Y = "yunikorn.apache.org/"


def pod(labels: dict[str, str] | None = None, notes: dict[str, str] | None = None) -> Pod:
    meta: dict[str, Any] = {"name": "p", "namespace": "lab", "uid": "u-1", "labels": labels, "annotations": notes}
    return msgspec.convert({"metadata": meta}, Pod)


def test_the_application_is_named_in_yunikorns_order() -> None:
    """The new label, the annotation, the old label, Spark's; each counts where those before it are missing."""
    labels = {f"{Y}app-id": "label", "applicationId": "old", "spark-app-selector": "spark"}
    notes = {f"{Y}app-id": "note"}
    seen = []
    for missing in (f"{Y}app-id", None, "applicationId", "spark-app-selector", "none is left"):
        seen.append(identity.application_id(pod(labels, notes)))
        if missing is None:
            notes = {}
        else:
            labels.pop(missing, None)
    assert seen == ["label", "note", "old", "spark", "yunikorn-lab-autogen"]


def test_the_queue_is_named_in_yunikorns_order() -> None:
    """The new label, the annotation, the old label."""
    notes = {f"{Y}queue": "root.note"}
    assert identity.queue_of(pod({f"{Y}queue": "root.label", "queue": "root.old"}, notes)) == "root.label"
    assert identity.queue_of(pod({"queue": "root.old"}, notes)) == "root.note"
    assert identity.queue_of(pod({"queue": "root.old"})) == "root.old"
    assert identity.queue_of(pod()) == ""


def test_an_application_for_each_pod() -> None:
    """YuniKorn's webhook writes an ending that stands for the pod's own identity."""
    assert identity.application_id(pod({f"{Y}app-id": "lab-uniqueautogen"})) == "lab-u-1"


def test_what_a_namespace_says_about_its_queue() -> None:
    """Quota, guarantee, applications and parent become the tags that placement reads."""
    notes = {
        f"{Y}namespace.quota": json.dumps({"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2"}),
        f"{Y}namespace.guaranteed": json.dumps({"cpu": "0.1"}),
        f"{Y}namespace.maxApps": "3",
        f"{Y}namespace.max.cpu": "9",
        f"{Y}parentqueue": "root.tenants",
    }
    tags = cluster.tags_of(notes)
    quota = json.loads(tags["namespace.resourcequota"])["resources"]
    assert quota == {"vcore": {"value": 500}, "memory": {"value": 1 << 30}, "nvidia.com/gpu": {"value": 2}}
    assert json.loads(tags["namespace.resourceguaranteed"]) == {"resources": {"vcore": {"value": 100}}}
    assert (tags["namespace.resourcemaxapps"], tags["namespace.parentqueue"]) == ("3", "root.tenants")
    assert cluster.tags_of({}) == {}


@pytest.mark.parametrize(
    ("notes", "quota"),
    [
        ({f"{Y}namespace.max.cpu": "2", f"{Y}namespace.max.memory": "1M"}, {"vcore": 2000, "memory": 1_000_000}),
        ({f"{Y}namespace.quota": "not JSON"}, None),
        ({f"{Y}namespace.quota": '{"cpu": "much"}'}, None),
    ],
)
def test_older_words_and_what_cannot_be_read(notes: dict[str, str], quota: dict[str, int] | None) -> None:
    """The two older annotations are a quota too; what makes no sense is passed over."""
    text = cluster.tags_of(notes).get("namespace.resourcequota")
    found = None if text is None else {name: v["value"] for name, v in json.loads(text)["resources"].items()}
    assert found == quota


@pytest.mark.parametrize("text", ["²", "٣", "1²", "-1", "9" * 10, "9" * 5000, ""])
def test_a_time_for_placeholders_that_is_no_number_is_none(text: str) -> None:
    """What anybody may write on a pod or job ends nothing: some digits are no decimal ones."""
    assert identity.timeout_ms({"placeholderTimeoutInSeconds": text}) == 0
    assert identity.timeout_ms({"placeholderTimeoutInSeconds": "60"}) == 60_000


def test_a_gang_larger_than_any_cluster_is_refused() -> None:
    """Nobody makes so many placeholders: the sentence says how many may be."""
    groups = [{"name": str(number), "minMember": 9_999, "minResource": {"cpu": "1"}} for number in range(2)]
    one = pod(notes={f"{Y}task-groups": json.dumps(groups)})
    with pytest.raises(identity.IdentityError, match="together 19998 pods; a gang has at most 10000"):
        identity.gang_of(one)
    groups[1]["minMember"] = 1
    assert identity.gang_of(pod(notes={f"{Y}task-groups": json.dumps(groups)})) is not None


@pytest.mark.parametrize(
    ("text", "user"),
    [('{"user": "ada", "groups": null}', ("ada", ())), ('{"user": null, "groups": ["a"]}', ("nobody", ("a",)))],
)
def test_null_in_what_a_webhook_writes_of_the_submitter_is_nothing(
    text: str, user: tuple[str, tuple[str, ...]]
) -> None:
    """Go writes a list without an entry so, and YuniKorn reads it so; the pod was unreadable."""
    assert identity.user_of(pod(notes={f"{Y}user.info": text})) == user
