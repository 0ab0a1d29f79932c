"""Where work may run, over the API and with real processes."""

from __future__ import annotations

from typing import Any


def test_work_waits_for_a_label_of_the_node(served: Any) -> None:
    """It starts when an administrator labels the node; the reason says what was in the way."""
    node = served.place.local.node
    key = served.submit("/bin/true", node_selector={"disk": "ssd"})
    waiting = served.call("GET", f"/api/v1/jobs/{key}").json
    assert (waiting["state"], waiting["reason"]["code"]) == ("waiting", "no-node-suits")
    assert waiting["node_selector"] == {"disk": "ssd"}
    answer = served.call("PUT", f"/api/v1/nodes/{node}/labels", {"attributes": {"disk": "ssd"}, "taints": []})
    assert answer.json["attributes"] == {"disk": "ssd"}
    assert served.wait(key)["state"] == "succeeded"


def test_jobs_apart_from_each_other_run_one_after_the_other(served: Any) -> None:
    """The label of the one keeps the other waiting until it ends."""
    first = served.submit("/bin/sleep", "60", labels={"app": "train"})
    second = served.submit("/bin/true", apart_from={"app": "train"})
    reason = served.call("GET", f"/api/v1/jobs/{second}").json["reason"]
    assert reason["values"]["excluded"] == {"anti-affinity": 1}
    served.call("POST", f"/api/v1/jobs/{first}/cancel")
    assert served.wait(second)["state"] == "succeeded"


def test_a_no_execute_taint_stops_what_runs(served: Any) -> None:
    """And keeps away what comes."""
    node = served.place.local.node
    running = served.submit("/bin/sleep", "60", grace_ms=0)
    taint = {"key": "broken", "value": "", "effect": "NoExecute"}
    served.call("PUT", f"/api/v1/nodes/{node}/labels", {"attributes": {}, "taints": [taint]})
    assert served.wait(running)["state"] == "evicted"
    kept = served.submit("/bin/true")
    assert served.call("GET", f"/api/v1/jobs/{kept}").json["reason"]["values"]["excluded"] == {"taint": 1}


def test_only_an_administrator_labels_an_existing_node(served: Any) -> None:
    """An unknown node is said; so is an effect that does not exist."""
    assert served.call("PUT", "/api/v1/nodes/none/labels", {}).status == 404
    wrong = {"taints": [{"key": "a", "effect": "Never"}]}
    assert served.call("PUT", f"/api/v1/nodes/{served.place.local.node}/labels", wrong).status == 422
