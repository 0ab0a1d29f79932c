"""How jobs are named on the command line: a number on a machine, `pod/NAME` on a cluster.

Decides which pod is meant. Never asks whether it is there. Invariant: what is no pod stays as it was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlead.cli.app import wrong_usage

if TYPE_CHECKING:
    from fairlead.client.sync import Client

POD = ("pod/", "pods/", "po/")
DEFAULT_NAMESPACE = "default"

namespace_option = click.option(
    "--namespace", "-n", metavar="NS", help="Namespace of a pod, for pod/NAME [that of the context, or default]."
)


def key_of(text: str, namespace: str | None = None, usual: str = "") -> str:
    """The key that the service knows: `NS/NAME` for `pod/NAME` and `pod/NS/NAME`, else the text. Raises `Failure`."""
    kind = next((kind for kind in POD if text.startswith(kind)), "")
    given, _, name = text[len(kind) :].rpartition("/")
    if given and namespace and given != namespace:
        raise wrong_usage(f"{text} and --namespace {namespace} name two namespaces; give one of them")
    if not kind and not namespace:
        return text
    return f"{given or namespace or usual or DEFAULT_NAMESPACE}/{name}"


def named(client: Client, text: str, namespace: str | None = None) -> str:
    """The key that is meant on the command line; the usual namespace is that of the context."""
    return key_of(text, namespace, client.address.namespace)
