"""Where things are when nobody says: state, sockets, ports, and the configuration of a client.

Decides the usual places, by the XDG base directory specification. Never opens anything, and
imports no pathlib: every command asks here. Invariant: a client looks where `fairlead up` listens.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_PORT = 9080
SYSTEM_STATE = "/var/lib/fairlead"
_JOURNAL = "journal.db"
SYSTEM_SOCKET = "/run/fairlead.sock"


def default_state_dir(environ: Mapping[str, str] = os.environ, uid: int | None = None) -> str:
    """Where the journal and the output of jobs are kept: /var/lib/fairlead as root, else in the user's state."""
    if (os.geteuid() if uid is None else uid) == 0:
        return SYSTEM_STATE
    return os.path.join(_base(environ, "XDG_STATE_HOME", ".local/state"), "fairlead")


def default_socket(environ: Mapping[str, str] = os.environ, uid: int | None = None) -> str:
    """Where the service listens for this machine's users."""
    # One that is not absolute is to be ignored: a client elsewhere would not find it.
    if (runtime_dir := environ.get("XDG_RUNTIME_DIR", "")).startswith("/"):
        return os.path.join(runtime_dir, "fairlead.sock")
    if (os.geteuid() if uid is None else uid) == 0:
        return SYSTEM_SOCKET
    return os.path.join(default_state_dir(environ, uid), "fairlead.sock")


def port_of_pages(port: int, wanted: int | None) -> int:
    """The one after the service's own where none is wanted; beside any free one any other; beside the last one, too."""
    if wanted is not None:
        return wanted
    return port + 1 if 0 < port < 65535 else 0


def journal_file(path: str | os.PathLike[str] | None = None) -> Path:
    """The journal that a path stands for: the file itself, or the one in a state directory [the usual one]."""
    from pathlib import Path

    found = Path(path or default_state_dir())
    return found / _JOURNAL if found.is_dir() else found


def journal_of(state_dir: Path) -> Path:
    """The journal of a state directory, which need not be there."""
    return state_dir / _JOURNAL


def client_config(environ: Mapping[str, str] = os.environ) -> str:
    """The configuration of a user's clients."""
    return os.path.join(_base(environ, "XDG_CONFIG_HOME", ".config"), "fairlead", "config.toml")


def _base(environ: Mapping[str, str], variable: str, usual: str) -> str:
    """A base directory of the user; one that is not absolute is to be ignored."""
    given = environ.get(variable, "")
    return given if given.startswith("/") else os.path.join(environ.get("HOME") or os.path.expanduser("~"), usual)
