"""The ends that a run reads from and writes to, as far as its supervisor holds the other ones.

Decides which there are: two outputs that are kept, a terminal, or files of the user, which the run opens by itself.
Never reads or writes. Invariant: what the run alone has to hold is closed here before it begins.
"""

from __future__ import annotations

from . import run_files
from .output import Output
from .run_files import Record
from .terminal import Terminal


class Ends:
    """Those of one run."""

    def __init__(self, directory: str, run: Record) -> None:
        """Make them. Raises OSError."""
        kept = {"stdout": run_files.STDOUT, "stderr": run_files.STDERR}
        if run["terminal"]:
            del kept["stderr"]
        made = {name: Output(directory, file, run) for name, file in kept.items() if not run["streams"][name]}
        self._outputs = list(made.values())
        self._terminal = Terminal(directory, run, made["stdout"]) if run["terminal"] else None
        self.of_child: list[int | None] = [made[name].end if name in made else None for name in ("stdout", "stderr")]
        """What is its standard output and standard error; None: it opens a file."""
        if self._terminal is not None:
            self.of_child = [self._terminal.end] * 3

    def let_go(self) -> None:
        """Only the run holds its ends from now on."""
        if self._terminal is not None:
            self._terminal.let_go()
        else:
            for each in self._outputs:
                each.let_go()

    def begin(self) -> None:
        """Take what it writes. Raises OSError."""
        for each in self._outputs:
            each.begin()
        if self._terminal is not None:
            self._terminal.begin()

    def finish(self) -> int:
        """Wait until all that it wrote is in the files; how many bytes at the end found no room."""
        return sum(each.finish() for each in self._outputs)
