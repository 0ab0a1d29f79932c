"""The webhook, registered with a real API server under its own rights: pods, what makes pods, and the queue file."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from free_ports import free_port
from testbed.cluster import Cluster, Manifest, pod
from testbed.deployment import NAMESPACE, kubeconfig_of, kustomized, of_kinds, reached_at

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]
USER_INFO = "yunikorn.apache.org/user.info"
APP_ID = "yunikorn.apache.org/app-id"
QUEUE = "yunikorn.apache.org/queue"
ADA = ("--as", "ada", "--as-group", "staff", "--as-group", "system:authenticated")
JOB_CONTROLLER = ("--as", "system:serviceaccount:kube-system:job-controller", "--as-group", "system:authenticated")


class Hooked:
    """A cluster whose API server asks two replicas of the webhook, one after the other as it likes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.kubectl = cluster.plane.kubectl
        self.processes: list[subprocess.Popen[bytes]] = []
        self.ports: list[int] = []
        self.log = cluster.folder / "webhook.log"
        rendered = list(kustomized("webhook").values())
        kinds = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
        cluster.apply(*of_kinds(rendered, *kinds))
        everybody = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}
        cluster.apply({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "everybody-tests"}, "subjects": [everybody],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        })  # fmt: skip
        self._registered = of_kinds(rendered, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        by_name = {(o["kind"], o["metadata"]["name"]): o for o in rendered}
        (container,) = by_name["Deployment", "fairlead-webhook"]["spec"]["template"]["spec"]["containers"]
        self._options = [word.replace("$(POD_NAMESPACE)", NAMESPACE) for word in container["args"]]

    def start(self) -> None:
        """One more replica, with the options and the rights of the manifest."""
        port = free_port()
        if not self.ports:
            self.cluster.apply(*reached_at(self._registered, f"https://127.0.0.1:{port}"))
        access = kubeconfig_of(self.cluster.plane, "fairlead-webhook", self.cluster.folder)
        own = ["--listen", f"127.0.0.1:{port}", "--name", "127.0.0.1", "--kubeconfig", str(access)]
        command = [sys.executable, "-m", "fairlead.cli.main", *self._options, *own]
        with self.log.open("ab") as out:
            self.processes.append(subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ}))
        self.ports.append(port)
        self.cluster.until(lambda: self.ready(port), "the webhook's start")

    def ready(self, port: int, authority: str = "") -> bool:
        """Whether a replica says it is ready; with `authority` only if that made its certificate."""
        assert all(process.poll() is None for process in self.processes), self.log.read_text()
        trust = ssl.create_default_context(cadata=authority) if authority else ssl._create_unverified_context()
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=trust, timeout=5) as answer:
                return bool(answer.status == 200)
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLError):
                raise
            return False

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        assert [process.wait(50) for process in self.processes] == [0] * len(self.processes)
        assert "is forbidden: User" not in self.log.read_text()

    def clear(self) -> None:
        for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
            self.kubectl("delete", kind, NAMESPACE, "--ignore-not-found")
        for process in self.processes:
            process.kill()
            process.wait()
        self.kubectl("delete", "clusterrolebinding", "everybody-tests", "--ignore-not-found")
        self.kubectl("delete", "secrets,configmaps", "--all", "-n", NAMESPACE)
        self.kubectl("delete", "jobs", "--all", "-n", "default", "--wait=false")

    def create(self, manifest: Manifest, *who: str, check: bool = True) -> str:
        return str(self.kubectl("create", "-f", "-", *who, manifest=manifest, check=check))


@pytest.fixture
def hooked(cluster: Cluster) -> Iterator[Hooked]:
    hooked = Hooked(cluster)
    try:
        hooked.start()
        yield hooked
    finally:
        hooked.clear()


def plain_pod(name: str, **more: Any) -> Manifest:
    """A pod that names no scheduler."""
    made = pod(name, **more)
    del made["spec"]["schedulerName"]
    return made


def test_a_users_pod_is_completed_scheduled_and_guarded(hooked: Hooked) -> None:
    """It gets scheduler, application, queue and submitter; the scheduler places it; nobody changes the submitter."""
    cluster = hooked.cluster
    cluster.nodes(1)
    hooked.kubectl("annotate", "namespace", "default", f"{QUEUE}=root.lab", "--overwrite")
    try:
        hooked.create(plain_pod("web"), *ADA)
    finally:
        hooked.kubectl("annotate", "namespace", "default", f"{QUEUE}-")
    found = cluster.pods()["web"]
    assert found["spec"]["schedulerName"] == "fairlead"
    assert found["metadata"]["labels"] == {APP_ID: "yunikorn-default-autogen", QUEUE: "root.lab"}
    told = json.loads(found["metadata"]["annotations"][USER_INFO])
    assert told == {"user": "ada", "groups": ["staff", "system:authenticated"]}
    running = cluster.schedule()
    cluster.until_placed("web")
    (application,) = json.loads(running.read("/ws/v1/partition/default/applications/active"))
    assert (application["user"], application["queueName"]) == ("ada", "root.lab")
    stolen = hooked.kubectl("annotate", "pod", "web", f'{USER_INFO}={{"user":"bob"}}', "--overwrite", *ADA, check=False)
    assert "may not submit in the name of 'bob'" in stolen
    refused = hooked.create(plain_pod("false", notes={USER_INFO: '{"user":"root"}'}), *ADA, check=False)
    assert "leave out the annotation" in refused
    hooked.end()


def test_what_a_controller_makes_belongs_to_whoever_declared_it(hooked: Hooked) -> None:
    """The job's template takes the submitter along; a namespace that stays out stays out."""
    spec = plain_pod("x")["spec"] | {"restartPolicy": "Never"}
    hooked.create(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sweep"}, "spec": {"template": {"spec": spec}}},
        *ADA,
    )
    template = hooked.cluster.plane.get("job", "sweep")["spec"]["template"]
    assert json.loads(template["metadata"]["annotations"][USER_INFO])["user"] == "ada"
    made = plain_pod("sweep-1", notes=template["metadata"]["annotations"])
    hooked.create(made, *JOB_CONTROLLER)
    assert hooked.cluster.pods()["sweep-1"]["metadata"]["annotations"] == template["metadata"]["annotations"]
    hooked.kubectl("label", "namespace", "default", "fairlead.io/enabled=false")
    try:
        time.sleep(1)
        hooked.create(plain_pod("outside"), *ADA)
    finally:
        hooked.kubectl("label", "namespace", "default", "fairlead.io/enabled-")
    assert hooked.cluster.pods()["outside"]["spec"]["schedulerName"] == "default-scheduler"


def test_a_wrong_queue_file_is_not_stored(hooked: Hooked) -> None:
    """kubectl says every error with its place; other ConfigMaps are stored whatever they hold."""
    wrong = {"queues.yaml": "partitions:\n  - name: default\n    queues:\n      - nam: root\n"}
    file = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fairlead-queues", "namespace": NAMESPACE}}
    said = hooked.create(file | {"data": wrong}, check=False)
    assert "the queue file cannot be used" in said
    assert "queues.yaml:4:" in said
    hooked.create(file | {"data": wrong, "metadata": {"name": "other", "namespace": NAMESPACE}})
    (good,) = of_kinds(kustomized("base").values(), "ConfigMap")
    hooked.create(good)


def test_lost_certificates_are_made_anew_and_replicas_agree(hooked: Hooked) -> None:
    """Two replicas share one Secret and one authority; pods are completed by either."""
    hooked.start()
    secret = hooked.cluster.plane.get("secret", "fairlead-webhook", "-n", NAMESPACE)["data"]
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        (webhook,) = hooked.cluster.plane.get(kind, "fairlead")["webhooks"]
        assert webhook["clientConfig"]["caBundle"] == secret["ca.crt"]
    authority = base64.b64decode(secret["ca.crt"]).decode()
    assert [hooked.ready(port, authority) for port in hooked.ports] == [True, True]
    hooked.kubectl("patch", "mutatingwebhookconfiguration", "fairlead", "--type=json", "-p", json.dumps([
        {"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": f"https://127.0.0.1:{hooked.ports[1]}/mutate"}
    ]))  # fmt: skip

    def completed() -> bool:
        hooked.kubectl("delete", "pod", "either", "--ignore-not-found", "--grace-period=0", "--force")
        hooked.create(plain_pod("either"), *ADA)
        return bool(hooked.cluster.pods()["either"]["spec"]["schedulerName"] == "fairlead")

    hooked.cluster.until(completed, "a pod that the second replica completed")
    hooked.end()
