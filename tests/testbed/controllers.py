"""What Kubernetes has beside a scheduler, played on a fake server: its controllers of what goes and what is made.

Decides what follows from what is there: pods of jobs, jobs of sets, and the end of what has no owner, no node, or does
not put up with a taint.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Callable
from typing import Any

from testbed import devices as bed
from testbed import provisioner as sea
from testbed.fake_server import FakeServer

KINDS = ("pods", "jobs", "jobsets")
"""What may own something."""
SET, PART = "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/replicatedjob-name"


class Controllers:
    """Those of one server."""

    def __init__(self, server: FakeServer, chance: random.Random, say: Callable[[str], None]) -> None:
        self.server, self.chance, self.say = server, chance, say
        self.number = 0
        self._tainted: dict[tuple[str, str, str], float] = {}
        """Since when a pod is on a node with this taint."""

    def priority(self, spec: dict[str, Any]) -> dict[str, Any]:
        """What admission says of a pod by its class."""
        found = self.server.one("priorityclasses", spec.get("priorityClassName", ""), "")
        if found is None:
            return {"priority": 0}
        return {"priority": found["value"], "preemptionPolicy": found["preemptionPolicy"]}

    async def run(self) -> None:
        maker = sea.Provisioner(self.server)
        claims = bed.ClaimController(self.server)
        claims.templates["t"] = bed.claim("t", bed.request(count=1))
        try:
            await self._control()
        finally:
            maker.stop()
            claims.stop()

    async def _control(self) -> None:
        while True:
            await asyncio.sleep(self.chance.choice([0.1, 0.5, 2.0]))
            self._owners()
            self._job_sets()
            self._jobs()
            self._taints()

    def _owners(self) -> None:
        there = {thing["metadata"]["uid"] for kind in KINDS for thing in self.server.all(kind)}
        for kind in ("jobs", "pods"):
            for thing in self.server.all(kind):
                owners = thing["metadata"].get("ownerReferences") or []
                if owners and not any(owner["uid"] in there for owner in owners):
                    self.server._delete(kind, thing, {})

    def _taints(self) -> None:
        for pod in self.server.all("pods"):
            name = pod["spec"].get("nodeName")
            if not name:
                continue
            node = self.server.one("nodes", name, "")
            if node is None:
                self.server.remove("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])
            elif not pod["metadata"].get("deletionTimestamp") and self._has_to_go(pod, node):
                self.server._delete("pods", pod, {})

    def _has_to_go(self, pod: dict[str, Any], node: dict[str, Any]) -> bool:
        """Whether it does not put up with a taint of its node, or no longer."""
        uid, name, now = pod["metadata"]["uid"], node["metadata"]["name"], self.server._now()
        taints = [taint for taint in node["spec"].get("taints") or () if taint["effect"] == "NoExecute"]
        there = {(uid, name, taint["key"]) for taint in taints}
        self._tainted = {at: since for at, since in self._tainted.items() if at[0] != uid or at in there}
        for taint in taints:
            since = self._tainted.setdefault((uid, name, taint["key"]), now)
            suiting = [t for t in pod["spec"].get("tolerations") or () if _tolerates(t, taint)]
            seconds = [t["tolerationSeconds"] for t in suiting if "tolerationSeconds" in t]
            if not suiting or (seconds and now - since >= min(seconds)):
                return True
        return False

    def _jobs(self) -> None:
        for job in self.server.all("jobs"):
            meta, spec = job["metadata"], job["spec"]
            status = copy.deepcopy(job.get("status") or {})
            if any(c["type"] == "Complete" for c in status.get("conditions") or ()):
                continue
            own = [
                p for p in self.server.all("pods")
                if any(o["uid"] == meta["uid"] for o in p["metadata"].get("ownerReferences") or ())
            ]  # fmt: skip
            for pod in own:
                if pod["status"].get("phase") in ("Succeeded", "Failed"):
                    word = pod["status"]["phase"].lower()
                    status[word] = status.get(word, 0) + 1
                    self.server.remove("pods", pod["metadata"]["name"], "default")
            active = [
                p
                for p in own
                if p["status"].get("phase") not in ("Succeeded", "Failed")
                and not p["metadata"].get("deletionTimestamp")
            ]
            going = [p for p in own if p["metadata"].get("deletionTimestamp")]
            done, whole = status.get("succeeded", 0), spec["completions"]
            if done >= whole if whole is not None else done and not active:
                status["conditions"] = [{"type": "Complete", "status": "True"}]
            want = 0 if spec["suspend"] else spec["parallelism"]
            if whole is not None:
                want = min(want, max(whole - done, 0))
            elif done:
                want = min(want, len(active))
            for pod in active[want:]:
                self.server._delete("pods", pod, {})
            klass = spec["template"]["spec"].get("priorityClassName", "")
            if not klass or self.server.one("priorityclasses", klass, "") is not None:
                for _ in range(want - len(active) - len(going)):
                    self._job_pod(job)
            status["active"] = min(len(active), want)
            if status != job.get("status"):
                self.server.put("jobs", {**job, "status": status})

    def _job_pod(self, job: dict[str, Any]) -> None:
        self.number += 1
        meta, template = job["metadata"], copy.deepcopy(job["spec"]["template"])
        spec = {**template["spec"], **self.priority(template["spec"])}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
        made = {
            "name": f"{meta['name']}-{self.number}",
            "namespace": "default",
            "ownerReferences": [owner],
            **template["metadata"],
        }
        self.server.put("pods", {"metadata": made, "spec": spec, "status": {"phase": "Pending"}})
        self.say(f"job {meta['name']} makes {made['name']}")

    def _job_sets(self) -> None:
        for job_set in self.server.all("jobsets"):
            meta, spec = job_set["metadata"], job_set["spec"]
            if (job_set.get("status") or {}).get("conditions"):
                continue  # It is over for good.
            own = [j for j in self.server.all("jobs") if (j["metadata"].get("labels") or {}).get(SET) == meta["name"]]
            own = [j for j in own if j["metadata"]["ownerReferences"][0]["uid"] == meta["uid"]]
            over = [j for j in own if any(c["type"] == "Complete" for c in j["status"].get("conditions") or ())]
            for job in own:
                if job["spec"]["suspend"] is not spec["suspend"] and job not in over:
                    self.server.put("jobs", {**job, "spec": {**job["spec"], "suspend": spec["suspend"]}})
            parts = []
            for part in spec["replicatedJobs"]:
                labels = {SET: meta["name"], PART: part["name"]}
                done = sum(job["metadata"]["labels"] == labels for job in over)
                parts.append({"name": part["name"], "succeeded": done})
                for number in range(part["replicas"]):
                    self._job_of(job_set, f"{meta['name']}-{part['name']}-{number}", labels, part["template"]["spec"])
            status: dict[str, Any] = {"replicatedJobsStatus": parts}
            if len(over) == sum(part["replicas"] for part in spec["replicatedJobs"]):
                status["conditions"] = [{"type": "Completed", "status": "True"}]
            if status != job_set.get("status"):
                self.server.put("jobsets", {**job_set, "status": status})

    def _job_of(self, job_set: dict[str, Any], name: str, labels: dict[str, str], given: dict[str, Any]) -> None:
        if self.server.one("jobs", name) is not None:
            return
        of = job_set["metadata"]
        owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": of["name"], "uid": of["uid"]}
        meta = {"name": name, "namespace": "default", "labels": labels}
        meta["ownerReferences"] = [{**owner, "controller": True}]
        spec = copy.deepcopy(given) | {"suspend": job_set["spec"]["suspend"]}
        spec["template"]["metadata"]["labels"] |= labels
        self.server.put("jobs", {"metadata": meta, "spec": spec, "status": {}})


def _tolerates(toleration: dict[str, Any], taint: dict[str, Any]) -> bool:
    is_of = toleration.get("key", taint["key"]) == taint["key"] and toleration.get("effect") in (None, taint["effect"])
    return is_of and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
