"""The manifests: Kustomize and Helm say the same, the API server takes them, and their rights suffice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts.make_manifests import DEPLOY, FILES, made
from testbed import deployment
from testbed.cluster import Cluster, pod, priority_class
from testbed.deployment import CHART, NAMESPACE, helm, kubeconfig_of, kustomized, of_kinds, templated

from fairlead.config import load_text
from fairlead.kubernetes.queue_file import DEFAULT_QUEUES

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]
OWN_POD = "fairlead-0"
"""What the scheduler's pod is called."""
ALL = ("--set", "webhook.enabled=true")


@pytest.fixture
def installed(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with everything of the larger overlay but what only works in a pod: the registered webhooks."""
    objects = [o for o in kustomized("webhook").values() if not o["kind"].endswith("WebhookConfiguration")]
    cluster.apply(*objects)
    yield cluster
    cluster.end()
    for item in objects:
        if item["kind"] != "Namespace":
            namespace = ("-n", NAMESPACE) if "namespace" in item["metadata"] else ()
            cluster.plane.kubectl("delete", item["kind"], item["metadata"]["name"], *namespace, "--wait=false")
    cluster.plane.kubectl("delete", "leases,secrets", "--all", "-n", NAMESPACE)


# -- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("overlay", "settings"), [("base", ()), ("webhook", ALL)])
def test_kustomize_and_helm_make_equal_objects(overlay: str, settings: tuple[str, ...]) -> None:
    """All but the namespace, which Helm leaves to whoever installs."""
    by_kustomize = kustomized(overlay)
    del by_kustomize["Namespace", "", NAMESPACE]
    assert templated(*settings) == by_kustomize


@pytest.mark.parametrize("name", FILES)
def test_the_plain_manifests_are_made_of_the_chart(name: str) -> None:
    """Word for word, so that there is one source of what they say."""
    assert (DEPLOY / "kubernetes" / name).read_text() == made(name)


def test_the_chart_is_clean() -> None:
    """`helm lint --strict`, with and without the webhook."""
    for settings in ((), ALL):
        done = helm("lint", "--strict", str(CHART), *settings)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ("replicas=0", "replicas"),
        ("webhook.failurePolicy=Maybe", "failurePolicy"),
        ("webhook.aplications=pod", "aplications"),
        ("queues=", "queues"),
    ],
)
def test_the_chart_refuses_wrong_values(settings: str, word: str) -> None:
    """By its schema, which names the value."""
    done = helm("template", NAMESPACE, str(CHART), "--kube-version", "1.34.0", "--set", settings)
    assert done.returncode
    assert word in done.stderr


def test_values_reach_what_they_are_for() -> None:
    """Every value of the chart changes something."""
    queues = load_text(DEFAULT_QUEUES).text.replace("namespace", "team")
    found = templated(
        *ALL, "--set", "image.repository=other,image.tag=v2,schedulerName=next,replicas=3,logLevel=debug",
        "--set", "placeholderImage=sleeper,priorityClassName=,nodeSelector.pool=system,extraArgs={--at-once=9}",
        "--set", "imagePullSecrets[0].name=key,tolerations[0].operator=Exists,podAnnotations.a=b",
        "--set", "webhook.replicas=4,webhook.failurePolicy=Fail,webhook.namespaces={team-*},webhook.except={x,y}",
        "--set", "webhook.applications=owner,webhook.users=false,webhook.trustUsers={u},webhook.trustGroups={g}",
        "--set", "resources.limits.memory=1Gi,webhook.resources.limits.memory=1Gi,image.pullPolicy=Always",
        "--set-string", "queues=" + queues.replace(",", "\\,"),
    )  # fmt: skip
    spec = found["Deployment", NAMESPACE, "fairlead"]["spec"]
    hook = found["Deployment", NAMESPACE, "fairlead-webhook"]["spec"]
    assert (spec["replicas"], hook["replicas"]) == (3, 4)
    for template in (spec["template"], hook["template"]):
        inner, (container,) = template["spec"], template["spec"]["containers"]
        assert (container["image"], container["imagePullPolicy"]) == ("other:v2", "Always")
        assert container["resources"]["limits"]["memory"] == "1Gi"
        assert {"--scheduler-name=next", "--log-level=debug"} < set(container["args"])
        assert "priorityClassName" not in inner
        assert inner["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "system"}
        assert (inner["imagePullSecrets"], inner["tolerations"]) == ([{"name": "key"}], [{"operator": "Exists"}])
        assert template["metadata"]["annotations"] == {"a": "b"}
    assert {"--placeholder-image=sleeper", "--at-once=9"} < set(spec["template"]["spec"]["containers"][0]["args"])
    wanted = {"--namespaces=team-*", "--except=x", "--except=y", "--applications=owner", "--no-users"}
    assert wanted | {"--trust-user=u", "--trust-group=g"} < set(hook["template"]["spec"]["containers"][0]["args"])
    registered = found["MutatingWebhookConfiguration", "", "fairlead"]["webhooks"][0]
    assert registered["failurePolicy"] == "Fail"
    optional = {"NetworkPolicy", "ServiceMonitor", "PrometheusRule"}
    assert not optional & {kind for kind, _, _ in found}
    assert ("CustomResourceDefinition", "", "queues.fairlead.io") in found
    without = templated("--set", "queueDefinition=false")
    assert ("CustomResourceDefinition", "", "queues.fairlead.io") not in without
    assert found["ConfigMap", NAMESPACE, "fairlead-queues"]["data"]["queues.yaml"].strip() == queues.strip()


def test_the_pages_have_a_port_of_their_own_unless_they_are_turned_off() -> None:
    """In the pod, the Service and the policy."""

    def ports(*settings: str) -> tuple[list[str], list[str], list[str], bool]:
        found = templated("--set", "networkPolicy.enabled=true", *settings)
        (container,) = found["Deployment", NAMESPACE, "fairlead"]["spec"]["template"]["spec"]["containers"]
        (rule,) = found["NetworkPolicy", NAMESPACE, "fairlead"]["spec"]["ingress"]
        return (
            [each["name"] for each in container["ports"]],
            [each["targetPort"] for each in found["Service", NAMESPACE, "fairlead"]["spec"]["ports"]],
            [each["port"] for each in rule["ports"]],
            "--no-pages" in container["args"],
        )

    both = ["http", "pages"]
    assert ports() == (both, both, both, False)
    assert ports("--set", "pages=false") == (["http"], ["http"], ["http"], True)


def test_what_a_cluster_may_have_beside_it() -> None:
    """Policies, monitoring, a dashboard, and what pods are given."""
    found = templated(
        *ALL, "--set", "networkPolicy.enabled=true,networkPolicy.from[0].podSelector.matchLabels.app=prometheus",
        "--set", "serviceMonitor.enabled=true,serviceMonitor.interval=10s,serviceMonitor.labels.release=kube",
        "--set", "serviceMonitor.account.namespace=watch,serviceMonitor.account.name=prom",
        "--set", "alerts.enabled=true,alerts.labels.release=kube,dashboard.enabled=true,dashboard.labels.team=ops",
        "--set", "affinity.nodeAffinity.x=1,podLabels.cost=infra,env[0].name=HTTPS_PROXY,env[0].value=http://proxy",
        "--set", "serviceAccount.annotations.role=scheduler",
    )  # fmt: skip
    policy = found["NetworkPolicy", NAMESPACE, "fairlead"]["spec"]
    (rule,) = policy["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
    assert "from" not in found["NetworkPolicy", NAMESPACE, "fairlead-webhook"]["spec"]["ingress"][0]
    monitor = found["ServiceMonitor", NAMESPACE, "fairlead"]
    service = found["Service", NAMESPACE, "fairlead"]
    selected = monitor["spec"]["selector"]["matchLabels"]
    assert selected.items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["interval"], endpoint["port"]) == ("10s", service["spec"]["ports"][0]["name"])
    assert monitor["metadata"]["labels"]["release"] == "kube"
    binding = found["ClusterRoleBinding", "", "fairlead-metrics"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "prom", "namespace": "watch"}]
    assert ("ClusterRole", "", binding["roleRef"]["name"]) in found
    (group,) = found["PrometheusRule", NAMESPACE, "fairlead"]["spec"]["groups"]
    assert len(group["rules"]) == 4
    board = found["ConfigMap", NAMESPACE, "fairlead-dashboard"]
    assert board["metadata"]["labels"].items() >= {"team": "ops", "grafana_dashboard": "1"}.items()
    assert len(json.loads(board["data"]["fairlead.json"])["panels"]) == 8
    for name in ("fairlead", "fairlead-webhook"):
        template = found["Deployment", NAMESPACE, name]["spec"]["template"]
        assert template["metadata"]["labels"]["cost"] == "infra"
        assert template["spec"]["affinity"] == {"nodeAffinity": {"x": 1}}
        (container,) = template["spec"]["containers"]
        assert {"name": "HTTPS_PROXY", "value": "http://proxy"} in container["env"]
        assert found["ServiceAccount", NAMESPACE, name]["metadata"]["annotations"] == {"role": "scheduler"}


def test_certificates_may_be_those_of_cert_manager() -> None:
    """It makes them and has them trusted; then the webhook may neither."""
    found = templated(*ALL, "--set", "webhook.certificates=cert-manager")
    certificate = found["Certificate", NAMESPACE, "fairlead-webhook"]["spec"]
    assert certificate["issuerRef"] == {"kind": "Issuer", "name": "fairlead-webhook"}
    assert ("Issuer", NAMESPACE, "fairlead-webhook") in found
    inner = found["Deployment", NAMESPACE, "fairlead-webhook"]["spec"]["template"]["spec"]
    (container,) = inner["containers"]
    assert "--certificates=/certificates" in container["args"]
    assert not [word for word in container["args"] if word.startswith("--secret")]
    (mounted,) = [v["secret"]["secretName"] for v in inner["volumes"] if "secret" in v]
    assert mounted == certificate["secretName"]
    service = found["Service", NAMESPACE, "fairlead-webhook"]["metadata"]
    assert certificate["dnsNames"][0] == f"{service['name']}.{service['namespace']}.svc"
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        notes = found[kind, "", "fairlead"]["metadata"]["annotations"]
        assert notes == {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/fairlead-webhook"}
    rights = str([found["ClusterRole", "", "fairlead-webhook"]["rules"]])
    assert "admissionregistration" not in rights
    assert ("Role", NAMESPACE, "fairlead-webhook") not in found
    issuer = "webhook.certificates=cert-manager,webhook.issuer.kind=ClusterIssuer,webhook.issuer.name=own"
    other = templated(*ALL, "--set", issuer)
    assert other["Certificate", NAMESPACE, "fairlead-webhook"]["spec"]["issuerRef"]["name"] == "own"
    assert ("Issuer", NAMESPACE, "fairlead-webhook") not in other


def test_two_installations_do_not_share_names() -> None:
    """Nothing that is there once for the whole cluster is called the same."""
    args = (str(CHART), "--kube-version", "1.34.0", "--namespace", "two", *ALL, "--set", "queueDefinition=false")
    done = helm("template", "second", *args)
    assert done.returncode == 0, done.stderr
    names = {
        line.strip() for line in done.stdout.splitlines() if line.strip().startswith(("name: fairlead", "- fairlead"))
    }
    assert not names


def test_the_queue_file_is_the_built_in_one() -> None:
    """Who installs without a word gets what who runs it without a word gets."""
    text = kustomized("base")["ConfigMap", NAMESPACE, "fairlead-queues"]["data"]["queues.yaml"]
    assert load_text(text).partitions == load_text(DEFAULT_QUEUES).partitions


# -- on a server ------------------------------------------------------------------------------------------------------


def test_the_pods_of_the_deployments_keep_the_restricted_profile(installed: Cluster) -> None:
    """The namespace enforces it; the API server itself judges."""
    for item in of_kinds(kustomized("webhook").values(), "Deployment"):
        meta = {"name": item["metadata"]["name"], "namespace": NAMESPACE}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": item["spec"]["template"]["spec"]}
        installed.plane.kubectl("create", "--dry-run=server", "-f", "-", manifest=made)


def test_the_options_of_the_deployments_are_taken(installed: Cluster) -> None:
    """The scheduler's command line, as it stands in the manifest, schedules under the rights of its service account.

    That takes all of them: the queue file, the lease, a gang with placeholders, a preemption with its condition and
    events, and a reader's token over HTTP.
    """
    cluster = installed
    cluster.nodes(1, cpu="4")
    access = kubeconfig_of(cluster.plane, "fairlead", cluster.folder)
    running = cluster.schedule(None, *_options("fairlead"), "--kubeconfig", str(access))
    gang = '[{"name":"g","minMember":2,"minResource":{"cpu":"1","memory":"64Mi"}}]'
    labels = {"applicationId": "gang-1"}
    notes = {"yunikorn.apache.org/task-group-name": "g", "yunikorn.apache.org/task-groups": gang}
    cluster.apply(*(pod(f"member-{n}", labels=labels, notes=notes) for n in range(2)))
    cluster.until_placed("member-0", "member-1")
    cluster.apply(priority_class("high", 1000), pod("big", "3", priority="high"))
    cluster.until_placed("big")
    cluster.until(lambda: [e for e in cluster.events("big") if e["reason"] == "Scheduled"], "the event")
    holder = cluster.plane.get("lease", "fairlead", "-n", NAMESPACE)["spec"]["holderIdentity"]
    assert holder
    cluster.apply({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fairlead-queues", "namespace": NAMESPACE},
        "data": {"queues.yaml": DEFAULT_QUEUES.replace("name: root", "name: root\n        maxapplications: 77")},
    })  # fmt: skip
    cluster.until(lambda: "is in force" in running.says(), "the new queue file")
    assert "is forbidden: User" not in running.says()
    assert "cannot" not in running.says()
    assert running.end() == 0
    assert not cluster.plane.get("lease", "fairlead", "-n", NAMESPACE)["spec"].get("holderIdentity")


def test_the_service_finds_the_process_that_schedules(installed: Cluster) -> None:
    """Its pod begins as a standby, and is labelled as the leader with the rights of its service account."""
    objects = kustomized("base")
    template = objects["Deployment", NAMESPACE, "fairlead"]["spec"]["template"]
    selector = objects["Service", NAMESPACE, "fairlead"]["spec"]["selector"]
    own = pod(OWN_POD, namespace=NAMESPACE, labels=template["metadata"]["labels"], schedulerName="none")
    own["spec"]["securityContext"] = template["spec"]["securityContext"]
    own["spec"]["containers"][0]["securityContext"] = template["spec"]["containers"][0]["securityContext"]
    installed.apply(own)

    def selected() -> bool:
        labels = installed.pods(NAMESPACE)[OWN_POD]["metadata"]["labels"]
        return selector.items() <= labels.items()

    assert not selected()
    access = kubeconfig_of(installed.plane, "fairlead", installed.folder)
    running = installed.schedule(None, *_options("fairlead"), "--kubeconfig", str(access))
    installed.until(selected, "the label of the leader")
    assert "is not labelled" not in running.says()


def test_the_pod_of_the_documentation_runs(installed: Cluster) -> None:
    """As it stands on the page, with the queue file that is installed, in the queue that it names."""
    page = (deployment.DEPLOY.parent / "docs" / "kubernetes.md").read_text()
    manifest = page.split("```yaml\n")[1].split("```")[0]
    installed.nodes(1)
    access = kubeconfig_of(installed.plane, "fairlead", installed.folder)
    running = installed.schedule(None, *_options("fairlead"), "--kubeconfig", str(access))
    installed.plane.apply(manifest)
    installed.until_placed("hello")
    (application,) = json.loads(running.read("/ws/v1/partition/default/applications/active"))
    assert (application["applicationID"], application["queueName"]) == ("hello", "root.default")


def _options(name: str) -> list[str]:
    """The options of a deployment, as its container gets them; but on a port of its own."""
    (container,) = kustomized("webhook")["Deployment", NAMESPACE, name]["spec"]["template"]["spec"]["containers"]
    words = [word.replace("$(POD_NAMESPACE)", NAMESPACE).replace("$(POD_NAME)", OWN_POD) for word in container["args"]]
    return [word for word in words[2:] if not word.startswith("--listen")]


@pytest.mark.parametrize(
    ("account", "may", "may_not"),
    [
        (
            "fairlead",
            ["create pods/binding", "patch pods/status", "delete pods", "create events.events.k8s.io", "list nodes",
             "list storageclasses", "watch csinodes", "patch persistentvolumeclaims", "patch persistentvolumes",
             "list limitranges", "watch runtimeclasses"],
            ["get secrets", "patch pods", "update pods", "patch nodes", "update nodes", "delete nodes",
             "list configmaps", "create pods/exec", "create pods/eviction", "delete namespaces",
             "update priorityclasses", "list secrets", "delete leases", "impersonate users",
             "delete persistentvolumeclaims", "create persistentvolumes", "update storageclasses"],
        ),
        (
            "fairlead-webhook",
            ["list namespaces", "create secrets"],
            ["get pods", "list secrets", "list mutatingwebhookconfigurations", "create mutatingwebhookconfigurations",
             "delete validatingwebhookconfigurations", "update namespaces", "get configmaps"],
        ),
    ],
)  # fmt: skip
def test_the_rights_end_where_they_are_not_needed(
    installed: Cluster, account: str, may: list[str], may_not: list[str]
) -> None:
    """As the API server judges."""

    def can(what: str) -> bool:
        who = f"system:serviceaccount:{NAMESPACE}:{account}"
        verb, _, resource = what.partition(" ")
        resource, _, sub = resource.partition("/")
        words = [
            "auth",
            "can-i",
            verb,
            resource,
            *(["--subresource", sub] if sub else []),
            "--as",
            who,
            "-n",
            NAMESPACE,
        ]
        return installed.plane.kubectl(*words, check=False).split()[0] == "yes"

    assert [what for what in may if not can(what)] == []
    assert [what for what in may_not if can(what)] == []


def test_every_right_is_used(installed: Cluster, tmp_path: Path) -> None:
    """No rule of the cluster role grants a resource that the source never names."""
    (role,) = (
        o for o in kustomized("base").values() if o["kind"] == "ClusterRole" and o["metadata"]["name"] == "fairlead"
    )
    source = "".join(
        path.read_text() for part in ("kubernetes", "service/kubernetes")
        for path in (deployment.DEPLOY.parent / "src" / "fairlead" / part).rglob("*.py")
    )  # fmt: skip
    for rule in role["rules"]:
        for resource in rule["resources"]:
            plural, _, sub = resource.partition("/")
            assert f'"{plural}"' in source or plural in source, resource
            assert not sub or f'"{sub}"' in source, resource


def test_readers_need_the_readers_role(installed: Cluster) -> None:
    """Over HTTP the cluster decides who reads: a token without the role is refused, with it it is taken."""
    cluster = installed
    cluster.apply({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "read-test"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fairlead-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "fairlead-webhook", "namespace": NAMESPACE}],
    })  # fmt: skip
    access = kubeconfig_of(cluster.plane, "fairlead", cluster.folder)
    running = cluster.schedule(None, *_options("fairlead"), "--kubeconfig", str(access))
    try:
        answers = {}
        for account in ("fairlead", "fairlead-webhook"):
            token = cluster.plane.kubectl("create", "token", account, "-n", NAMESPACE).strip()
            answers[account] = _get(running.url + "/api/v1/queues", token)
    finally:
        cluster.plane.kubectl("delete", "clusterrolebinding", "read-test")
    assert answers["fairlead"][0] == 403
    assert "ClusterRole" in answers["fairlead"][1]["detail"]
    assert answers["fairlead-webhook"][0] == 200


def _get(url: str, token: str) -> tuple[int, Any]:
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=50) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
