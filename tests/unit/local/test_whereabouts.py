"""Plain fields and the constraints that they mean."""

from __future__ import annotations

import pytest

from fairlead.core.model.constraints import ANYWHERE
from fairlead.core.model.matching import flaw
from fairlead.local.history_records import fields_of, where_of
from fairlead.wire.fields import full_port


def test_nothing_said_means_anywhere() -> None:
    """The one object that costs nothing."""
    assert where_of({}, [], {}, {}) is ANYWHERE


def test_the_fields_come_back() -> None:
    """And the constraints between make sense."""
    where = where_of({"disk": "ssd"}, ["TCP/0.0.0.0/80"], {"app": "db", "tier": "1"}, {"app": "train"})
    assert flaw(where) == ""
    assert fields_of(where) == {
        "node_selector": {"disk": "ssd"},
        "ports": ["TCP/0.0.0.0/80"],
        "beside": {"app": "db", "tier": "1"},
        "apart_from": {"app": "train"},
    }


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("8080", "TCP/0.0.0.0/8080"),
        ("udp/53", "UDP/0.0.0.0/53"),
        ("TCP//80", "TCP/0.0.0.0/80"),
        ("TCP/127.0.0.1/080", "TCP/127.0.0.1/80"),
    ],
)
def test_ports_are_completed(text: str, full: str) -> None:
    """TCP and every address, unless said."""
    assert full_port(text) == full


@pytest.mark.parametrize("text", ["", "http", "0", "65536", "ICMP/1", "TCP/1.1.1.1/80/1"])
def test_what_is_no_port_is_refused(text: str) -> None:
    """With examples."""
    with pytest.raises(ValueError, match="is no port; write 8080"):
        full_port(text)
