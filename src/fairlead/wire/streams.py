"""The script that a job runs, what it reads from and what it writes to: the fields that jobs have for it.

Decides the fields. Never what the files hold, nor who may open them. Invariant: what is empty is left to the service:
nothing to read, and output that it keeps.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from fairlead.wire.fields import Request, Wrong, clean_text, said
from fairlead.wire.patterns import checked

_Path = Annotated[str, Meta(max_length=4096)]
OpenMode = Literal["truncate", "append"]
Output = Literal["stdout", "stderr"]
PIPED = "/fairlead-input-"
"""In the name of what is piped into `fairlead run`: it is read once, as nobody keeps any of it."""
UMASK = "022"
"""That of a job of which nothing else is said."""
MOST_SCRIPT = 256 * 1024
"""Characters of a script."""
Script = Annotated[str, Meta(max_length=MOST_SCRIPT)]


def script(text: str) -> str:
    """A script that can be executed. Raises `ValueError`."""
    if text and not text.startswith("#!"):
        raise ValueError("must begin with the line that names its interpreter, such as #!/bin/sh")
    return clean_text(text)


class StreamsDraft(Request, frozen=True, kw_only=True):
    """Files of the user instead of those that the service keeps; opened by the job itself, with the user's rights."""

    CHECKS: ClassVar = {"stdin": checked, "stdout": checked, "stderr": checked, "script": script}

    stdin: Annotated[_Path, said("The file that its standard input is; empty: /dev/null. Patterns as in `stdout`.")] = (
        ""
    )
    stdout: Annotated[
        _Path,
        said(
            "The file that it writes its standard output to, from its directory on; %j is its key, %x its name, %u its "
            "user, %a and %A index and key of its array, %N its node. Empty: the service keeps its output."
        ),
    ] = ""
    stderr: Annotated[_Path, said("The same for standard error; empty: where `stdout` says.")] = ""
    open_mode: Annotated[OpenMode, said("What becomes of what is in these files already, at each attempt.")] = (
        "truncate"
    )
    umask: Annotated[
        Annotated[str, Meta(pattern="^0?[0-7]{3}$")],
        said("Permissions that files which it makes do not have, in octal digits, such as 077."),
    ] = UMASK
    script: Annotated[
        Script,
        said("A text that begins with #!, kept with the job and run instead of the first word of `command`."),
    ] = ""
    terminal: Annotated[
        bool, said("It runs at a terminal of its own, which its user may sit at; then it has no files of its own.")
    ] = False

    def __post_init__(self) -> None:
        """Raises `Wrong` for a terminal beside files."""
        super().__post_init__()
        if self.terminal and (self.stdin or self.stdout or self.stderr):
            raise Wrong("terminal", "reads and writes are those of the terminal; leave stdin, stdout and stderr out")
