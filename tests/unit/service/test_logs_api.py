"""What jobs write into files of their users, over HTTP."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Served

ALICE, BOB = 54_321, 54_322
pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="needs several users")]


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory of alice's that all may enter."""
    made = Path(tempfile.mkdtemp(prefix="fl-home-", dir="/tmp"))
    os.chown(made, ALICE, ALICE)
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def logs(served: Served, key: str, query: str = "", who: str = "alice") -> bytes:
    return served.call("GET", f"/api/v1/jobs/{key}/logs{query}", who=who).body


def test_a_file_of_the_user_is_shown(served: Served, home: Path) -> None:
    """By its own key and name; standard error is in it, and told once."""
    given = {"cwd": str(home), "name": "train", "stdout": "%x-%j.txt"}
    key = served.submit("/bin/sh", "-c", "echo out; echo err >&2", who="alice", **given)
    shown = served.wait(key)
    assert (shown["state"], shown["own_files"]) == ("succeeded", ["stdout", "stderr"])
    assert shown["stdout"] == shown["stderr"] == str(home / f"train-{key}.txt")
    assert (logs(served, key), logs(served, key, "?stream=stderr")) == (b"out\nerr\n", b"")
    assert logs(served, key, "?offset=4&limit=3") == b"err"
    assert served.call("GET", f"/api/v1/jobs/{key}/logs", who="bob").status == 404


def test_what_the_user_may_not_read_is_not_shown(served: Served, home: Path) -> None:
    """Though the service could: a link in its place leads nowhere."""
    key = served.submit("/bin/sh", "-c", "echo out", who="alice", cwd=str(home), stdout="out")
    served.wait(key)
    secret = home.parent / f"{home.name}-secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    try:
        (home / "out").unlink()
        (home / "out").symlink_to(secret)
        answered = served.call("GET", f"/api/v1/jobs/{key}/logs", who="alice")
        assert (answered.status, b"secret\n" in answered.body) == (404, False)
        assert "cannot be read by its owner" in answered.error["detail"]
    finally:
        secret.unlink()
    (home / "out").unlink()
    os.mkfifo(home / "out", 0o666)
    assert "is no plain file" in served.call("GET", f"/api/v1/jobs/{key}/logs", who="alice").error["detail"]


def test_what_cannot_be_read_is_not_followed_either(served: Served, home: Path) -> None:
    """It is refused at once; where it comes to that later, the answer ends in order, and who asks again is told."""
    key = served.submit("/bin/sh", "-c", "echo out", who="alice", stdout="/dev/null")
    served.wait(key)
    answered = served.call("GET", f"/api/v1/jobs/{key}/logs?follow=true", who="alice")
    assert "/dev/null is no plain file" in answered.error["detail"]
    begin = {"begin_at_ms": int(time.time() * 1000) + 1500}
    later = served.submit("/bin/sh", "-c", "echo out", who="alice", stdout="/dev/null", **begin)
    assert logs(served, later, "?follow=true") == b""
    served.wait(later)


@pytest.mark.parametrize("follow", ["", "?follow=true"])
def test_output_that_was_removed_is_not_there_any_more(served: Served, home: Path, follow: str) -> None:
    """It was shown as nothing, as if the job had written nothing."""
    own = served.submit("/bin/echo", "out", who="alice", cwd=str(home), stdout="out")
    kept = served.submit("/bin/echo", "out", who="alice", cwd=str(home))
    paths = [Path(served.wait(key)["stdout"]) for key in (own, kept)]
    for key, path in zip((own, kept), paths, strict=True):
        path.unlink()
        answered = served.call("GET", f"/api/v1/jobs/{key}/logs{follow}", who="alice")
        said = f"what it wrote is not there any more: there is no file {path}"
        assert (answered.status, answered.error["detail"]) == (404, said)


def test_what_never_ran_wrote_nothing(served: Served, home: Path) -> None:
    """That is no fault."""
    key = served.submit("/no/such/command", who="alice", cwd=str(home), stdout="out")
    assert served.wait(key)["state"] == "failed"
    nowhere = served.submit("/bin/true", who="alice", cwd=str(home), stdout="none/out")
    assert served.wait(nowhere)["state"] == "failed"
    held = served.submit("/bin/true", who="alice", cwd=str(home), hold=True)
    served.call("POST", f"/api/v1/jobs/{held}/cancel", {}, "alice")
    for each in (key, nowhere, held):
        assert served.call("GET", f"/api/v1/jobs/{each}/logs", who="alice").status == 200


def test_it_is_followed(served: Served, home: Path) -> None:
    """As it grows, until the job ends; the second attempt begins it anew, or goes on."""
    key = served.submit(
        "/bin/sh", "-c", "echo attempt $FAIRLEAD_ATTEMPT; sleep 0.5; [ $FAIRLEAD_ATTEMPT = 2 ]",
        who="alice", cwd=str(home), stdout="out", open_mode="append", retry={"limit": 1},
    )  # fmt: skip
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(logs(served, key, "?follow=true")))
    reader.start()
    served.wait(key)
    reader.join(10)
    assert found == [b"attempt 1\nattempt 2\n"]


def test_a_job_has_the_umask_that_was_said(served: Served) -> None:
    """Also without files of its own; a further one that repeats it, too."""
    key = served.submit("/bin/sh", "-c", "umask", who="alice", umask="027")
    assert (served.wait(key)["umask"], logs(served, key)) == ("027", b"0027\n")
    again = served.call("POST", f"/api/v1/jobs/{key}/rerun", {}, who="alice").json["key"]
    assert (served.wait(again)["umask"], logs(served, again)) == ("027", b"0027\n")
    assert served.call("POST", "/api/v1/jobs", {"jobs": [{"command": ["a"], "umask": "9"}]}).status == 422


def test_a_name_that_changes_does_not_move_what_is_written(served: Served, home: Path) -> None:
    """The file is what it was called at the start."""
    key = served.submit("/bin/sleep", "60", who="alice", cwd=str(home), name="before", stdout="%x.txt")
    served.wait(key, "running")
    served.call("PATCH", f"/api/v1/jobs/{key}", {"name": "later"}, who="alice")
    assert served.show(key)["stdout"] == str(home / "before.txt")
    end = time.monotonic() + 50
    while not (home / "before.txt").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {"now": True}, who="alice")
    served.wait(key)


def test_patterns_are_checked(served: Served) -> None:
    """With the field."""
    body = {"jobs": [{"command": ["true"], "cwd": "/", "stdout": "%q"}]}
    answered = served.call("POST", "/api/v1/jobs", body, who="alice")
    assert (answered.status, answered.error["field"]) == (422, "jobs[0].stdout")


def test_a_script_is_kept_as_long_as_its_job(served: Served, home: Path) -> None:
    """Then it has to be given again."""
    text = "#!/bin/sh\necho $1 from a script\n"
    served.place.state_dir.parent.chmod(0o711)
    key = served.submit("job.sh", "one", who="alice", cwd=str(home), script=text)
    assert served.wait(key)["command"] == ["job.sh", "one"]
    assert logs(served, key) == b"one from a script\n"
    again = served.call("POST", f"/api/v1/jobs/{key}/rerun", {}, who="alice")
    assert (again.status, again.error["field"]) == (422, "script")
    again = served.call("POST", f"/api/v1/jobs/{key}/rerun", {"script": text}, who="alice")
    served.wait(again.json["key"])
    assert logs(served, again.json["key"]) == b"one from a script\n"
    body = {"jobs": [{"command": ["x"], "cwd": "/", "script": "echo"}]}
    assert served.call("POST", "/api/v1/jobs", body, who="alice").error["field"] == "jobs[0].script"


def test_a_script_is_shown_as_long_as_its_job_lives(served: Served) -> None:
    """To those whose business it is; what runs a command has none."""
    text = "#!/bin/sh\necho one\n"
    key = served.submit("job.sh", who="alice", hold=True, script=text)
    assert served.call("GET", f"/api/v1/jobs/{key}/script", who="alice").json == {"script": text}
    assert served.call("GET", f"/api/v1/jobs/{key}/script", who="bob").status == 404
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {}, who="alice")
    assert "was forgotten" in served.call("GET", f"/api/v1/jobs/{key}/script", who="alice").json["detail"]
    other = served.submit("/bin/true", who="alice", hold=True)
    assert "no script" in served.call("GET", f"/api/v1/jobs/{other}/script", who="alice").json["detail"]
