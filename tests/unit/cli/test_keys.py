"""How pods are named on the command line."""

from __future__ import annotations

import pytest

from fairlead.cli.app import Failure, key_of


@pytest.mark.parametrize(
    ("text", "namespace", "key"),
    [
        ("17", None, "17"),
        ("pod/web", None, "default/web"),
        ("pod/web", "shop", "shop/web"),
        ("pods/shop/web", None, "shop/web"),
        ("po/shop/web", "shop", "shop/web"),
        ("web", "shop", "shop/web"),
        ("shop/web", None, "shop/web"),
    ],
)
def test_what_names_a_pod(text: str, namespace: str | None, key: str) -> None:
    """Work on a machine keeps its number; a pod goes by namespace and name."""
    assert key_of(text, namespace) == key


def test_two_namespaces_are_refused() -> None:
    """Which one is meant cannot be known."""
    with pytest.raises(Failure, match="two namespaces"):
        key_of("pod/shop/web", "home")
