"""The fields of a job for where it reads from and writes to.

Decides how they are said. Never opens a file. Invariant: a pattern is refused here as the service would refuse it.
"""

from __future__ import annotations

from typing import Final

import click

from fairlead.cli.field import Field

STREAMS: Final = (
    Field(
        "stdout",
        "--output -o",
        "FILE",
        "Write its output here, such as run-%j.txt: %j key, %x name, %u user, %A and %a array and index, "
        "%N node. The service keeps it if not given.",
        "pattern",
    ),
    Field("stderr", "--error", "FILE", "Write its standard error here.", "pattern", absent="with its output"),
    Field("stdin", "--stdin", "FILE", "Read its standard input from here.", "pattern", absent="/dev/null"),
    Field(
        "open_mode",
        "--open-mode",
        "MODE",
        "What becomes of what is in these files: truncate or append.",
        "open_mode",
        absent="truncate",
        settings={"type": click.Choice(["truncate", "append"])},
    ),
    Field(
        "umask",
        "--umask",
        "MASK",
        "Permissions that files which it makes do not have, such as 077.",
        "umask",
        absent="yours",
    ),
    Field(
        "notify",
        "--notify",
        "TARGET",
        "Send a message about it: mail:ADDRESS, a URL, or a command for the shell; may be repeated.",
        settings={"multiple": True},
    ),
    Field(
        "notify_on",
        "--notify-on",
        "WHEN,...",
        "When: start, end, fail (ended otherwise than well); end if not given. Of an array once; parts: of each part.",
    ),
)
