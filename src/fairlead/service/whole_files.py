"""Files that are there whole or not at all.

Decides how a small file takes the place of the old one: beside it, durable, then renamed; and how it is sealed.
Invariant: whoever reads the file, after a crash too, finds all of the old content or all of the new, as it was written.
"""

from __future__ import annotations

import os
from pathlib import Path

from fairlead.local.supervisor.sealed import seal, unseal


def read_whole(path: Path) -> bytes:
    """What was written. Raises `Damaged` (a ValueError) if it is something else, and OSError."""
    return unseal(path.read_bytes())


def write_whole(path: Path, content: bytes) -> None:
    """Put one line in the place of the file, for its owner's eyes only; durable when this returns. Raises OSError."""
    fresh = path.with_name(f"{path.name}.new")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(seal(content))
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
