"""The options about TLS of what listens.

Decides nothing. Invariant: wherever a service is told an address to listen on, it has the same three.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def tls_options(function: _F) -> _F:
    """The options --tls-cert, --tls-key and --allow-plain-http."""
    file = click.Path(path_type=Path)
    cert = click.option(
        "--tls-cert",
        type=file,
        metavar="FILE",
        help="Speak TLS over TCP with this certificate (PEM, those up to its authority behind it); a new one there is "
        "taken at once.",
    )
    key = click.option("--tls-key", type=file, metavar="FILE", help="Its key (PEM) [in the file of the certificate].")
    plain = click.option(
        "--allow-plain-http",
        is_flag=True,
        help="Listen beyond loopback without TLS: tokens and output can be read on the way.",
    )
    return cert(key(plain(function)))
