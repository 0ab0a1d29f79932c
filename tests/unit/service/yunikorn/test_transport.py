"""What is decided before any handler: paths, methods, escapes, numbers."""

from __future__ import annotations

import pytest

from fairlead.runtime import Refusal
from fairlead.service.yunikorn.transport import mended, number, unescaped
from fairlead.service.yunikorn.watch_routes import known


@pytest.mark.parametrize(
    ("text", "meant"),
    [("root.a", "root.a"), ("root.%40recovery%40", "root.@recovery@"), ("a%2Fb", "a/b"), ("a+b", "a b"), ("ä", "ä")],
)
def test_escapes_are_taken_off(text: str, meant: str) -> None:
    """As in a query."""
    assert unescaped(text) == meant


@pytest.mark.parametrize(("text", "named"), [("root.%Zc", "%Zc"), ("a%2", "%2"), ("a%", "%")])
def test_broken_escapes_are_refused(text: str, named: str) -> None:
    """With the part that is broken."""
    with pytest.raises(Refusal, match=f'invalid URL escape "{named}"') as caught:
        unescaped(text)
    assert caught.value.code == "malformed"


@pytest.mark.parametrize(("text", "value"), [(None, 7), ("", 7), ("0", 0), ("12", 12), ("9" * 20, 10**20 - 1)])
def test_numbers(text: str | None, value: int) -> None:
    """None given: the default."""
    assert number("count", text, 7) == value


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "٣", "9" * 10_000])
def test_what_is_no_number_is_refused(text: str) -> None:
    """With its name, and what may be written."""
    with pytest.raises(Refusal, match=r"count: '.* is no whole number from 0 to"):
        number("count", text, 0)


def test_paths_are_told_apart_and_mended() -> None:
    """Case and slashes may be wrong, but not the values."""
    parts = ["", "ws", "v1", "partition", "{partition}", "queues"]
    assert mended(parts, "/ws/v1/partition/p/queues") == "/ws/v1/partition/p/queues"
    assert mended(parts, "/WS/v1//Partition/P%20x/queues/") == "/ws/v1/partition/P%20x/queues"
    assert mended(parts, "/ws/v1/partition//queues") is None
    assert mended(parts, "/ws/v1/partition/p/nodes") is None


def test_every_route_of_the_interface_is_there() -> None:
    """The paths that YuniKorn has, but for Go's own profiles."""
    partition, queue = "/ws/v1/partition/{partition}", "/ws/v1/partition/{partition}/queue/{queue}"
    assert sorted(known()) == sorted(
        [
            "/ws/v1/clusters",
            "/ws/v1/metrics",
            "/ws/v1/config",
            "/ws/v1/validate-conf",
            "/ws/v1/history/apps",
            "/ws/v1/history/containers",
            "/ws/v1/partitions",
            f"{partition}/placementrules",
            f"{partition}/queues",
            queue,
            f"{partition}/nodes",
            f"{partition}/node/{{node}}",
            f"{queue}/applications",
            f"{queue}/applications/{{state}}",
            f"{queue}/application/{{application}}",
            f"{partition}/application/{{application}}",
            f"{partition}/applications/{{state}}",
            f"{partition}/usage/users",
            f"{partition}/usage/groups",
            f"{partition}/usage/user/{{user}}",
            f"{partition}/usage/group/{{group}}",
            "/ws/v1/events/batch",
            "/ws/v1/events/stream",
            "/ws/v1/scheduler/healthcheck",
            "/ws/v1/scheduler/node-utilizations",
            "/ws/v1/stack",
            "/ws/v1/fullstatedump",
            "/debug/stack",
            "/debug/fullstatedump",
        ]
    )
