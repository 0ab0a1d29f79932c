"""The signal before a job's time limit, from the request to the process."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.real
TRAPS = "#!/bin/sh\ntrap 'echo got it; exit 5' USR1\nwhile :; do sleep 0.02; done\n"


def test_a_script_gets_it_before_its_time_is_over(served: Any) -> None:
    """It is shown as it is kept, and is that of the job that repeats it, too."""
    given = {"script": TRAPS, "time_limit_ms": 60_000, "limit_signal": "B:USR1@59"}
    key = served.submit("job.sh", **given)
    assert served.wait(key)["exit_code"] == 5
    again = served.call("POST", f"/api/v1/jobs/{key}/rerun", {"script": TRAPS}).json["key"]
    assert served.show(again)["limit_signal"] == "B:SIGUSR1@59"
    assert served.wait(again)["exit_code"] == 5


def test_without_a_time_limit_it_does_not_come(served: Any) -> None:
    """It was refused; in Slurm such a script runs. It comes where a limit is given later."""
    given = {"script": TRAPS, "limit_signal": "B:USR1@59"}
    held = served.submit("job.sh", hold=True, **given)
    assert served.show(held)["limit_signal"] == "B:SIGUSR1@59"
    assert served.call("PATCH", f"/api/v1/jobs/{held}", {"time_limit_ms": 60_000}).status == 200
    assert served.call("POST", f"/api/v1/jobs/{held}/release").status == 200
    assert served.wait(held)["exit_code"] == 5


def test_it_may_be_longer_than_its_time_limit(served: Any) -> None:
    """As in Slurm, where it comes at once; it was refused."""
    key = served.submit("job.sh", script=TRAPS, time_limit_ms=60_000, limit_signal="B:USR1@600")
    assert served.wait(key)["exit_code"] == 5


def test_what_is_none_is_refused(served: Any) -> None:
    """With its field."""
    answer = served.call("POST", "/api/v1/jobs", {"jobs": [{"command": ["true"], "limit_signal": "soon"}]})
    assert (answer.status, answer.error["field"]) == (422, "jobs[0].limit_signal")


def test_the_time_limit_of_its_queue_will_do(served: Any) -> None:
    """What is below it alone."""
    text = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: q, properties: {job.time.default: 10m}}]
"""
    assert served.call("PUT", "/api/v1/config", {"text": text}).status == 200
    job = {"command": ["true"], "queue": "root.q", "limit_signal": "USR1@600"}
    answer = served.call("POST", "/api/v1/jobs", {"jobs": [job]})
    assert (answer.status, answer.json["jobs"][0]["time_limit_ms"]) == (201, 600_000)
