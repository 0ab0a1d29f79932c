"""How jobs are named on the command line: a number on a machine, `pod/NAME` on a cluster.

Decides which pod is meant. Never asks whether it is there. Invariant: what is no pod stays as it was written.
"""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead.cli.failures import wrong_usage

POD = ("pod/", "pods/", "po/")
DEFAULT_NAMESPACE = "default"

NamespaceOption = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NS", help="Namespace of a pod [default]; for pod/NAME."),
]


def key_of(text: str, namespace: str | None = None) -> str:
    """The key that the service knows: `NS/NAME` for `pod/NAME` and `pod/NS/NAME`, else the text. Raises `Failure`."""
    kind = next((kind for kind in POD if text.startswith(kind)), "")
    given, _, name = text[len(kind) :].rpartition("/")
    if given and namespace and given != namespace:
        raise wrong_usage(f"{text} and --namespace {namespace} name two namespaces; give one of them")
    if not kind and not namespace:
        return text
    return f"{given or namespace or DEFAULT_NAMESPACE}/{name}"
