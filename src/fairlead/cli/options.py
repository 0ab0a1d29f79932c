"""Options that several commands share: one name, one help text and one check each.

Decides how they are written and what is wrong with one. Never reads a file or reaches a service.
"""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead.cli.failures import wrong_usage

_LEVELS = ("debug", "info", "warning", "error")

LogLevelOption = Annotated[
    str,
    typer.Option(
        "--log-level", metavar="LEVEL", help="How much to say on standard error: debug, info, warning or error."
    ),
]
KubeconfigOption = Annotated[
    str | None,
    typer.Option("--kubeconfig", metavar="FILE", help="Else KUBECONFIG, the pod's service account, or ~/.kube/config."),
]
ContextOption = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="A context of it [its current one].")
]


def check_log_level(level: str) -> None:
    """Raise a wrong usage unless there is such a level."""
    if level not in _LEVELS:
        raise wrong_usage(f"--log-level: there is no level {level!r}; write one of {', '.join(_LEVELS)}")
