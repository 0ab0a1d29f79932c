"""The state directory: made where it is not there, and looked at before anything in it is believed.

Decides whether it may be used. Never opens what is in it. Invariant: one that is used was writable for nobody but root
and the service's own user; whoever else could put tokens or orders in would have the service's rights.
"""

from __future__ import annotations

import os
from pathlib import Path

from fairlead.local import accounts


class StateError(Exception):
    """It cannot be used; the text says why and what to do."""


def state_directory(wanted: Path) -> Path:
    """Its absolute path, once it is there and nobody else's. Raises `StateError`."""
    path = wanted.absolute()
    try:
        # Users reach their own output below it, and nothing else: its files are for the service alone.
        path.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
        found = path.stat()
    except OSError as error:
        raise StateError(
            f"cannot make the state directory {path}: {error.strerror}; choose another (--state)"
        ) from error
    if found.st_uid not in (0, os.geteuid()):
        owner, own = accounts.by_uid(found.st_uid).name, accounts.by_uid(os.geteuid()).name
        raise StateError(
            f"the state directory {path} belongs to {owner}, who could have put in anything; choose another (--state), "
            f"or look at what is in it and take it over: chown -R {own} {path}"
        )
    if found.st_mode & 0o022:
        said = f"others may write to the state directory {path}, and could have put in anything"
        raise StateError(f"{said}; look at what is in it, then: chmod go-w {path}")
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        raise StateError(f"the state directory {path} is on a read-only disk; see to that, or choose another (--state)")
    if not os.access(path, os.W_OK | os.X_OK):
        raise StateError(f"the state directory {path} is not writable for you; choose another (--state)")
    return path
