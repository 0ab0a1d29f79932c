"""What is decided before any handler: paths, methods, escapes, numbers."""

from __future__ import annotations

import pytest

from fairlead.service.yunikorn.table import known
from fairlead.service.yunikorn.transport import Known, Plainly, number, unescaped, wants_gzip


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
    with pytest.raises(Plainly, match=f'invalid URL escape "{named}"') as caught:
        unescaped(text)
    assert caught.value.status == 400


@pytest.mark.parametrize(("text", "value"), [(None, 7), ("", 7), ("0", 0), ("12", 12), (str(2**64 - 1), 2**64 - 1)])
def test_numbers(text: str | None, value: int) -> None:
    """None given: the default."""
    assert number("count", text, 7) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-1", "invalid syntax"),
        ("x", "invalid syntax"),
        ("1.5", "invalid syntax"),
        ("٣", "invalid syntax"),
        (str(2**64), "value out of range"),
        ("9" * 10_000, "value out of range"),
    ],
)
def test_what_is_no_number_is_refused(text: str, why: str) -> None:
    """In the words of Go."""
    with pytest.raises(Plainly, match=why):
        number("count", text, 0)


def test_paths_are_told_apart_and_mended() -> None:
    """Case and slashes may be wrong, but not the values."""
    one = Known.of("GET", "/ws/v1/partition/{partition}/queues")
    assert one.matches(["", "ws", "v1", "partition", "p", "queues"])
    assert not one.matches(["", "ws", "v1", "partition", "", "queues"])
    assert not one.matches(["", "ws", "v1", "partition", "p", "queues", ""])
    assert one.mended(["", "WS", "v1", "", "Partition", "P%20x", "queues", ""]) == "/ws/v1/partition/P%20x/queues"
    assert one.mended(["", "ws", "v1", "partition", "p", "nodes"]) is None


@pytest.mark.parametrize(
    ("accepted", "wanted"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0", False),
        ("gzipped", False),
        ("", False),
        ("*", False),
    ],
)
def test_compression_is_for_who_names_it(accepted: str, wanted: bool) -> None:
    """Any case; not with q=0."""
    assert wants_gzip(accepted) is wanted


def test_every_route_of_the_interface_is_there() -> None:
    """The paths that YuniKorn has, but for Go's own profiles."""
    partition, queue = "/ws/v1/partition/{partition}", "/ws/v1/partition/{partition}/queue/{queue}"
    assert sorted(known()) == sorted(
        [
            ("GET", "/ws/v1/clusters"),
            ("GET", "/ws/v1/metrics"),
            ("GET", "/ws/v1/config"),
            ("POST", "/ws/v1/validate-conf"),
            ("GET", "/ws/v1/history/apps"),
            ("GET", "/ws/v1/history/containers"),
            ("GET", "/ws/v1/partitions"),
            ("GET", f"{partition}/placementrules"),
            ("GET", f"{partition}/queues"),
            ("GET", queue),
            ("GET", f"{partition}/nodes"),
            ("GET", f"{partition}/node/{{node}}"),
            ("GET", f"{queue}/applications"),
            ("GET", f"{queue}/applications/{{state}}"),
            ("GET", f"{queue}/application/{{application}}"),
            ("GET", f"{partition}/application/{{application}}"),
            ("GET", f"{partition}/applications/{{state}}"),
            ("GET", f"{partition}/usage/users"),
            ("GET", f"{partition}/usage/groups"),
            ("GET", f"{partition}/usage/user/{{user}}"),
            ("GET", f"{partition}/usage/group/{{group}}"),
            ("GET", "/ws/v1/events/batch"),
            ("GET", "/ws/v1/events/stream"),
            ("GET", "/ws/v1/scheduler/healthcheck"),
            ("GET", "/ws/v1/scheduler/node-utilizations"),
            ("GET", "/ws/v1/stack"),
            ("GET", "/ws/v1/fullstatedump"),
            ("GET", "/debug/stack"),
            ("GET", "/debug/fullstatedump"),
        ]
    )
