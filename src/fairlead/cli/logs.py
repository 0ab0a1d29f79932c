"""How the log of a service looks on standard error: lines for people, or JSON for what collects them.

Decides the form of a line. Never what is logged. Invariant: a record is one line.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

import click

log_level_option = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    metavar="LEVEL",
    help="How much to say on standard error: debug, info, warning or error.",
)
log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    metavar="FORMAT",
    help="How to say it: text, or a JSON object a line.",
)


class JsonLines(logging.Formatter):
    """A record as one JSON object: at, level, logger, message, and the exception if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)


def log_as(form: str) -> None:
    """Log in this form from now on; the service keeps a handler that is there."""
    if form == "json":
        handler = logging.StreamHandler()
        handler.setFormatter(JsonLines())
        log = logging.getLogger("fairlead")
        log.addHandler(handler)
        log.propagate = False
