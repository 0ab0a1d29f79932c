"""The process itself on a real API server: probes, questions, the lease, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from testbed.cluster import Cluster, pod, priority_class

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]


def test_the_command_line_asks_a_cluster(cluster: Cluster) -> None:
    """`ls`, `why`, `show`, `whatif`, `queues`, `nodes` answer about pods by namespace and name."""
    cluster.nodes(1, cpu="4")
    cluster.apply(priority_class("high", 1000), pod("runs", "3"))
    running = cluster.schedule()
    cluster.until_placed("runs")
    cluster.apply(pod("waits", "3"))
    cluster.until_told("waits", "cpu")

    def ask(*words: str) -> str:
        return cluster.fairlead(running, *words)

    assert "default/waits" in ask("ls")
    rows = {row["key"]: row for row in json.loads(ask("ls", "--json"))}
    assert rows["default/runs"]["state"] == "running"
    assert rows["default/runs"]["node"] == "n0"
    assert "cpu" in rows["default/waits"]["reason"]["sentence"]
    told = ask("why", "pod/waits")
    assert "default/waits: waiting (1st in its queue)" in told
    assert "You can make it anew with requests of cpu 1 at most (now cpu 3)" in told, "what stops nothing comes first"
    everything = ask("why", "pod/waits", "-n", "default", "--all")
    assert "default/waits: waiting" in everything
    # Both pods are of one application; that the other one is stopped for it is said all the same.
    assert "if its priority were 1 (now 0); that would stop default/runs" in everything
    assert "n0" in everything
    assert "runs on n0" in ask("why", "pod/runs")
    assert "would start: default/waits" in ask("whatif", "cancel", "pod/runs")
    assert "nothing would be otherwise" in ask("whatif", "drain", "n0")
    assert "default/waits" in ask("whatif", "add-nodes", "n0", "1")
    assert "root.default" in ask("queues")
    assert "n0" in ask("nodes")
    assert "default/runs" in ask("show", "pod/runs")
    assert "no pod default/nobody" in cluster.fairlead(running, "why", "pod/nobody", status=4)


def test_top_and_when_follow_a_cluster(cluster: Cluster) -> None:
    """`top` prints what happens as it happens, and `when` says when a pod may start."""
    cluster.nodes(1, cpu="4")
    cluster.apply(pod("runs", "3", activeDeadlineSeconds=600))
    running = cluster.schedule()
    cluster.until_placed("runs")
    file = cluster.folder / "top.txt"
    command = [sys.executable, "-m", "fairlead.cli.main", "top", "--interval", "600"]
    with file.open("wb") as out:
        environ = {**os.environ, "FAIRLEAD_URL": running.url}
        top = subprocess.Popen(command, stdout=out, stderr=out, env=environ)
    try:
        cluster.until(lambda: "default/runs" in file.read_text(), "the first look")
        cluster.apply(pod("waits", "3"))
        cluster.until(lambda: "default/waits" in file.read_text(), "the pod that waits")
        told = json.loads(cluster.fairlead(running, "when", "pod/waits", "--json"))
        # Nothing has ended yet: all that is known is what the pod that runs declares.
        assert (told["known"], told["median_ms"]) == (False, None)
        assert told["made_ms"] < told["latest_ms"] <= told["made_ms"] + 600_000
        cluster.plane.kubectl("delete", "pod", "runs", "--grace-period=0", "--force")
        cluster.until(lambda: "running on n0" in file.read_text().rpartition("default/waits")[2], "its start")
        assert "default/runs" in file.read_text().rpartition("deleted")[0]
    finally:
        top.terminate()
        top.wait()


def test_forecasts_know_what_ends_by_itself(cluster: Cluster) -> None:
    """A time limit counts from the start, which the next process has from the server; what is restarted for ever never
    ends.
    """
    cluster.nodes(2, cpu="4")
    on = [{"nodeSelector": {"kubernetes.io/hostname": name}} for name in ("n0", "n1")]
    running = cluster.schedule()

    def when(name: str) -> dict[str, Any]:
        return dict(json.loads(cluster.fairlead(running, "when", f"pod/{name}", "--json")))

    cluster.apply(pod("limited", "3", restartPolicy="Never", activeDeadlineSeconds=600, **on[0]))
    cluster.until_placed("limited")
    cluster.until(lambda: cluster.pods()["limited"]["status"].get("phase") == "Running", "its start")
    cluster.apply(pod("first", "3", **on[0]))
    cluster.until_told("first", "")
    told = when("first")
    assert told["made_ms"] + 500_000 < told["latest_ms"] <= told["made_ms"] + 600_000
    began = datetime.now(UTC) - timedelta(seconds=500)
    status = json.dumps({"status": {"startTime": began.strftime("%Y-%m-%dT%H:%M:%SZ")}})
    cluster.plane.kubectl("patch", "pod", "limited", "--subresource=status", "--type=merge", "-p", status)
    assert running.end() == 0
    running = cluster.schedule()
    cluster.until(lambda: (now := when("first"))["latest_ms"] <= now["made_ms"] + 100_000, "the time since its start")
    cluster.apply(pod("service", "3", restartPolicy="Always", **on[1]))
    cluster.until_placed("service")
    cluster.apply(pod("second", "3", **on[1]))
    cluster.until_told("second", "")
    told = when("second")
    assert (told["never"], told["earliest_ms"]) == (1.0, None)
    assert any("restarted for ever" in each for each in told["assumptions"])


def test_probes_figures_and_yunikorns_interface(cluster: Cluster) -> None:
    """Probes need no token, figures have both names, and /ws/v1 shows partitions, queues, nodes and applications."""
    cluster.nodes(2)
    cluster.apply(pod("web"))
    running = cluster.schedule()
    cluster.until_placed("web")
    cluster.until(lambda: "fairlead_kubernetes_bound_total 1.0" in running.read("/metrics"), "the bind in the figures")
    figures = running.read("/metrics")
    assert 'fairlead_kubernetes_pods{state="running"} 1.0' in figures
    assert "yunikorn_scheduler_container_allocation_attempt_total" in figures
    assert [running.status(path) for path in ("/livez", "/readyz", "/healthz")] == [200, 200, 200]
    assert json.loads(running.read("/ws/v1/partitions"))[0]["name"] == "default"
    assert len(json.loads(running.read("/ws/v1/partition/default/nodes"))) == 2
    assert json.loads(running.read("/ws/v1/partition/default/applications/active"))
    assert json.loads(running.read("/ws/v1/scheduler/healthcheck"))["Healthy"] is True
    assert json.loads(running.read("/ws/v1/events/batch"))["EventRecords"]


def test_people_read_why(cluster: Cluster) -> None:
    """`kubectl describe pod` shows where it was put; and why it waits."""
    cluster.nodes(1, cpu="4")
    cluster.apply(pod("runs", "3"))
    cluster.schedule()
    cluster.until_placed("runs")
    cluster.apply(pod("waits", "3"))
    cluster.until_told("waits", "cpu")
    cluster.until(lambda: cluster.events("runs"), "an event")
    assert "Successfully assigned default/runs to n0" in cluster.plane.kubectl("describe", "pod", "runs")
    shown = cluster.plane.kubectl("get", "pod", "waits", "-o", "yaml")
    assert "reason: Unschedulable" in shown


def test_it_stops_in_order(cluster: Cluster) -> None:
    """SIGTERM: it ends with 0, gives its lease back at once, and the next one takes over what runs."""
    cluster.nodes(1, cpu="4")
    cluster.apply(pod("one", "1"))
    first = cluster.schedule(None, "--leader-elect")
    cluster.until_placed("one")
    second = cluster.schedule(None, "--leader-elect")
    assert "stands by" in cluster.fairlead(second, "ls", status=5)
    assert first.end(signal.SIGTERM) == 0
    cluster.apply(pod("two", "1"))
    cluster.until_placed("two")
    cluster.apply(pod("big", "3"))
    cluster.until_told("big", "cpu")
    assert "leads" in second.says()


def test_a_lost_lease_ends_it(cluster: Cluster) -> None:
    """Whoever lost the lease stops at once, with a status that has it started anew."""
    running = cluster.schedule(None, "--leader-elect")
    cluster.until(lambda: "leads" in running.says(), "the lease")
    lease = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 60}}
    cluster.plane.kubectl("patch", "lease", "fairlead", "--type=merge", "-p", json.dumps(lease))
    cluster.until(lambda: running.process.poll() is not None, "its end", 20)
    assert running.process.returncode == 1
    assert "lease default/fairlead is lost" in running.says()


def test_what_is_wrong_at_the_start_is_one_sentence(cluster: Cluster) -> None:
    """No credentials, no config map, a wrong queue file: status 1 and a sentence that says what to do."""
    missing = cluster.schedule(None, "--config-map", "default/none", ready=False)
    assert missing.process.wait(50) == 1
    assert "there is no configmap default/none" in missing.says()
    wrong = cluster.schedule("partitions: [{name: default, queues: [{name: 'a b'}]}]", ready=False)
    assert wrong.process.wait(50) == 1
    assert "Traceback" not in wrong.says() + missing.says()
    stranger = cluster.folder / "stranger"
    stranger.write_text(cluster.plane.kubeconfig.read_text().replace("token-admin", "token-of-nobody"))
    unknown = cluster.schedule(None, "--kubeconfig", str(stranger), ready=False)
    assert unknown.process.wait(50) == 1
    assert "does not know these credentials" in unknown.says()
    assert "Traceback" not in unknown.says()
