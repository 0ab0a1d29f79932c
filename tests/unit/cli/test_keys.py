"""How pods are named on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("key", ["", "  "])
@pytest.mark.parametrize("name", ["show", "wait", "cancel", "logs", "hold", "update", "attach", "why"])
def test_an_empty_key_is_refused(service: Any, run: Callable[..., Any], name: str, key: str) -> None:
    """It is what a variable that is not set leaves behind: said at once, and the service is asked nothing."""
    result = run(name, "17", key) if name not in ("attach", "why") else run(name, key)
    assert (result.exit_code, service.requests) == (2, [])
    assert result.stderr == f"fairlead: {name}: an empty key names no job; is a variable not set?\n"


def test_a_pod_without_a_name_is_refused() -> None:
    """There is none that it could mean."""
    for text in ("", "pod/", "pod/shop/"):
        with pytest.raises(Failure, match="names no job"):
            key_of(text, None)


@pytest.mark.parametrize("words", [("logs",), ("wait",), ("attach",), ("why",)])
def test_a_pod_is_in_the_namespace_of_the_context(
    service: Any, run: Callable[..., Any], socket_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Any
) -> None:
    """Everywhere alike; `default` counts only where the context says none."""
    monkeypatch.delenv("FAIRLEAD_SOCKET")
    file = tmp_path / "config" / "fairlead" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'current = "c"\n[contexts.c]\nsocket = "{socket_path}"\nnamespace = "shop"\n')
    run(*words, "pod/web")
    assert "/api/v1/jobs/shop%2Fweb" in service.requests[0].path
