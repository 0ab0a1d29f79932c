"""Where the service and its journal are.

Decides which address a client uses: the option, then the environment, then the first usual place that exists. Never
connects. Invariant: the default places are the ones that `fairlead up` uses.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fairlead.cli.failures import wrong_usage
from fairlead.service.options import DEFAULT_PORT, SYSTEM_SOCKET, default_socket, default_state_dir

__all__ = [
    "DEFAULT_PORT",
    "Address",
    "address_of_url",
    "default_socket",
    "default_state_dir",
    "find_address",
    "journal_file",
]

_JOURNAL = "journal.db"


@dataclass(frozen=True, slots=True)
class Address:
    """One place to connect to: a Unix socket, or a host and port."""

    socket: str = ""
    scheme: str = "http"
    host: str = ""
    port: int = 0
    prefix: str = ""
    """Path in front of `/api`, for a service behind a proxy."""
    token: str = ""

    def __str__(self) -> str:
        return self.socket or f"{self.scheme}://{self.host}:{self.port}{self.prefix}"

    @property
    def variable(self) -> str:
        """The environment variable that names such an address."""
        return "FAIRLEAD_SOCKET" if self.socket else "FAIRLEAD_URL"


def find_address(socket: str | None, url: str | None, environ: Mapping[str, str] | None = None) -> Address:
    """The address to use. An option beats the environment; of the usual places the first that exists is taken.

    The last of them is the machine's own service (/run/fairlead.sock), so that everybody finds a shared one. Raises
    `Failure` (usage) for both options at once, or a URL that is none.
    """
    environ = os.environ if environ is None else environ
    if socket and url:
        raise wrong_usage("--socket and --url name two places; give one of them")
    if not socket and not url:
        socket, url = environ.get("FAIRLEAD_SOCKET"), environ.get("FAIRLEAD_URL")
        if socket and url:
            raise wrong_usage("FAIRLEAD_SOCKET and FAIRLEAD_URL are both set and name two places; unset one of them")
    if url:
        return address_of_url(url, environ.get("FAIRLEAD_TOKEN", "").strip())
    if socket:
        return Address(socket=str(Path(socket).expanduser()))
    own = default_socket(environ)
    return Address(socket=str(SYSTEM_SOCKET if not own.exists() and SYSTEM_SOCKET.exists() else own))


def address_of_url(url: str, token: str = "") -> Address:
    """`http://host:port/prefix` taken apart; `host:port` alone is understood. Raises `Failure` (usage) otherwise."""
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise wrong_usage(f"{url!r} is not an address; write for example http://127.0.0.1:{DEFAULT_PORT}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise wrong_usage(f"{url!r} is not an address; write for example http://127.0.0.1:{DEFAULT_PORT}")
    if port is None:
        port = 443 if parts.scheme == "https" else DEFAULT_PORT
    prefix = parts.path.rstrip("/")
    return Address(scheme=parts.scheme, host=parts.hostname, port=port, prefix=prefix, token=token)


def journal_file(path: Path | None) -> Path:
    """The journal that a path stands for: the file itself, or the one in a state directory [the usual one]."""
    path = path or default_state_dir()
    return path / _JOURNAL if path.is_dir() else path
