"""Files of the user that a run reads from and writes to, instead of those that the service keeps.

Decides nothing. Invariant: once a run has its place, these are whole paths, and they stay what they are.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Of a job: patterns of names; of a run: whole paths. Empty: nothing to read; output that the service keeps."""

    stdin: str = ""
    stdout: str = ""
    stderr: str = ""
    append: bool = False
    """What is in the files stays there."""
    umask: int = 0o022
    """The permissions that no file has which the job makes, as in umask(2)."""

    @property
    def own_output(self) -> bool:
        """Whether any output goes to a file of the user."""
        return bool(self.stdout or self.stderr)


NONE = Streams()
