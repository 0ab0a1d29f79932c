"""The unit with which systemd runs a service of this machine.

Decides its text. Never writes it and never asks systemd. Invariant: stopping or restarting the unit ends the service
alone; jobs go on, in control groups that are the service's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

NAME = "fairlead.service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What is to be run, and for whom."""

    command: Sequence[str]
    """The program with its arguments, its whole path first."""
    system: bool
    """For everybody on this machine, by root; else for one user alone."""

    def text(self) -> str:
        """The file."""
        return _TEXT.format(
            whom="this machine" if self.system else "one user",
            after="After=network-online.target nss-user-lookup.target\nWants=network-online.target\n" * self.system,
            command=" ".join(map(quoted, self.command)),
            state=_SYSTEM_STATE * self.system,
            target="multi-user.target" if self.system else "default.target",
        )


_TEXT = """\
# Made by `fairlead service install`. Your own settings: `systemctl edit fairlead`.
[Unit]
Description=Fairlead, who runs where and when on {whom}
{after}StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
Restart=on-failure
RestartSec=2
SyslogIdentifier=fairlead
# The service alone is told to stop, and jobs go on; the next start takes them over.
KillMode=process
TimeoutStopSec=60
# Control groups below its own are the service's: it bounds its jobs in them.
Delegate=yes
# A job that uses too much memory is one job's end, not the service's.
OOMPolicy=continue
# Bounds of the unit would be bounds of all jobs together.
TasksMax=infinity
LimitNOFILE=524288
{state}
[Install]
WantedBy={target}
"""
_SYSTEM_STATE = """\
# Users reach their own output below it, and nothing else.
StateDirectory=fairlead
StateDirectoryMode=0711
"""


def quoted(word: str) -> str:
    """A word as systemd reads it back, whatever is in it."""
    said = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return said if re.fullmatch(r"[\w@+=:,./$%-]+", said) else f'"{said}"'
