"""`fairlead label`, and the options of `submit` that say where work may run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

NODE = {
    "id": "n",
    "attributes": {"disk": "hdd", "rack": "7"},
    "taints": [{"key": "t", "value": "", "effect": "NoExecute"}],
}


@pytest.fixture
def one_node(service: Any) -> Any:
    """A service with a node that can be labelled."""
    service.on("GET", "/nodes", {"nodes": [NODE]})
    service.on("PUT", "/nodes/n/labels", lambda request: NODE | request.body)
    return service


@pytest.mark.parametrize(
    ("words", "attributes", "taints"),
    [
        (("disk=ssd", "rack-"), {"disk": "ssd"}, NODE["taints"]),
        (("--untaint", "t"), NODE["attributes"], []),
        (
            ("--taint", "gpu=a100:NoSchedule"),
            NODE["attributes"],
            [*NODE["taints"], {"key": "gpu", "value": "a100", "effect": "NoSchedule"}],
        ),
        (("--taint", "t=1:NoExecute"), NODE["attributes"], [{"key": "t", "value": "1", "effect": "NoExecute"}]),
    ],
)
def test_what_is_not_named_stays_as_it_is(
    one_node: Any, run: Callable[..., Any], words: tuple[str, ...], attributes: Any, taints: Any
) -> None:
    """Attributes are set and taken away by word; a taint replaces the one with its key and effect."""
    result = run("label", "n", *words)
    assert (result.exit_code, result.stderr) == (0, "")
    assert one_node.sent("PUT", "/nodes/n/labels") == [{"attributes": attributes, "taints": taints}]


def test_what_the_node_says_now_is_printed(one_node: Any, run: Callable[..., Any]) -> None:
    """And what was to be taken away and was not there."""
    result = run("label", "n", "disk=ssd", "rack-", "size-", "--untaint", "gpu", "--taint", "old=1:NoSchedule")
    assert result.stdout == "n: disk=ssd; taints old=1:NoSchedule, t:NoExecute\n"
    assert result.stderr == "note: n had no gpu\nnote: n had no size\n"


def test_the_list_of_nodes_shows_what_they_were_given(service: Any, run: Callable[..., Any]) -> None:
    """Not what each says of itself; without any there is no column for it."""
    own = {"hostname": "n", "kubernetes.io/hostname": "n", "metadata.name": "n", "fairlead.io/cluster": ""}
    service.on("GET", "/nodes", {"nodes": [NODE | {"attributes": own, "taints": []}]})
    assert "ATTRIBUTES" not in run("nodes").stdout
    service.on("GET", "/nodes", {"nodes": [NODE | {"attributes": own | {"disk": "ssd"}}]})
    head, row = run("nodes").stdout.splitlines()
    assert head.split()[-2:] == ["ATTRIBUTES", "TAINTS"]
    assert row.split()[-2:] == ["disk=ssd", "t:NoExecute"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "label: say what to change"),
        (("disk",), "label: 'disk' is neither NAME=VALUE nor NAME-"),
        (("--taint", "gpu"), "--taint: 'gpu' is not KEY[=VALUE]:EFFECT"),
        (("--taint", "gpu:Never"), "--taint: 'gpu:Never' is not KEY[=VALUE]:EFFECT"),
    ],
)
def test_words_without_sense_change_nothing(
    one_node: Any, run: Callable[..., Any], words: tuple[str, ...], message: str
) -> None:
    """One sentence, and status 2."""
    result = run("label", "n", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not one_node.sent("PUT", "/nodes/n/labels")


def test_an_unknown_node_is_said(one_node: Any, run: Callable[..., Any]) -> None:
    """With the command that lists them."""
    result = run("label", "other", "a=b")
    assert result.exit_code == 4
    assert "there is no node other" in result.stderr


def test_where_work_may_run_is_sent_in_full(service: Any, run: Callable[..., Any]) -> None:
    """Ports are completed; labels go as they are."""
    service.on("POST", "/jobs", lambda _: {"jobs": [service.add("1")]})
    options = ("--node-selector", "disk=ssd", "--port", "8080", "--port", "udp/53", "--beside", "app=db")
    result = run("submit", *options, "--apart-from", "app=train", "--", "true")
    assert result.exit_code == 0, result.stderr
    [sent] = service.sent("POST", "/jobs")
    [job] = sent["jobs"]
    assert job["node_selector"] == {"disk": "ssd"}
    assert job["ports"] == ["TCP/0.0.0.0/8080", "UDP/0.0.0.0/53"]
    assert (job["beside"], job["apart_from"]) == ({"app": "db"}, {"app": "train"})


def test_a_port_that_is_none_is_named_as_the_option(service: Any, run: Callable[..., Any]) -> None:
    """Before anything is sent."""
    result = run("submit", "--port", "http", "--", "true")
    assert result.exit_code == 2
    assert "--port: 'http' is no port; write 8080" in result.stderr
