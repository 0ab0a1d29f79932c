"""`--log-format json`: what a service logs, for what collects it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime

import pytest
from click.testing import CliRunner

from fairlead.cli.main import app

PROGRAM = """
import logging
from fairlead.cli.logs import log_as
from fairlead.runtime.process import log_to_stderr
log_as("json")
log_to_stderr("info")
log = logging.getLogger("fairlead.service")
log.debug("not said")
log.info("serving %s", "everyone")
log.warning("two\\nlines, and \\u00fc")
try:
    {}["gone"]
except KeyError:
    log.exception("a fault")
logging.getLogger("uvicorn.error").warning("no request")
logging.getLogger("asyncio").error("a task")
"""


def test_each_record_is_one_object_a_line() -> None:
    """With its time, level and message; also one of several lines, and one with a traceback."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=50, check=True)
    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(each["level"], each["message"]) for each in records] == [
        ("info", "serving everyone"),
        ("warning", "two\nlines, and ü"),
        ("error", "a fault"),
        ("warning", "no request"),
        ("error", "a task"),
    ]
    for each in records:
        assert datetime.fromisoformat(each["at"]).utcoffset() is not None
    assert [each["logger"] for each in records] == ["fairlead.service"] * 3 + ["uvicorn.error", "asyncio"]
    assert "Traceback" in records[2]["exception"]
    assert records[2]["exception"].endswith("KeyError: 'gone'")
    assert "exception" not in records[0]


REFUSED = """
import logging
from fairlead.runtime.process import log_to_stderr
log_to_stderr("info")
logging.getLogger("fairlead").handlers[0].setStream(open("/dev/full", "w", buffering=1))
logging.getLogger("fairlead.service").info("stopped")
"""


def test_a_line_that_the_disk_refuses_is_lost_and_nothing_is_said_about_it() -> None:
    """There is nowhere else to say it; Python printed a traceback into the log."""
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, timeout=50, check=False)
    assert "Logging error" not in done.stderr


@pytest.mark.parametrize("command", [("up",), ("kubernetes", "run"), ("kubernetes", "webhook")])
def test_every_service_has_both_forms(command: tuple[str, ...]) -> None:
    """And says which there are."""
    result = CliRunner().invoke(app, [*command, "--log-format", "xml"])
    assert result.exit_code == 2
    assert "'xml' is not one of 'text', 'json'" in result.output
