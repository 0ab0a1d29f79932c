"""Options of the commands that reach a Kubernetes cluster themselves.

Decides how they are written. Never reads a file or reaches a cluster.
"""

from __future__ import annotations

import click

kubeconfig_option = click.option(
    "--kubeconfig", metavar="FILE", help="Else KUBECONFIG, the pod's service account, or ~/.kube/config."
)
context_option = click.option("--context", metavar="NAME", help="A context of it [its current one].")
