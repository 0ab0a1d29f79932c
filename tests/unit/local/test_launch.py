"""Whom a run is executed as, and what its last step needs."""

from __future__ import annotations

import pwd
import subprocess
import sys
from pathlib import Path

import pytest
from testbed.paper import Service

from fairlead.core.model.resources import Resources
from fairlead.local import launch
from fairlead.local.runs import RunSpec

NOBODY = 54_321
"""A number that no account has."""


def run_of(user: str, uid: int) -> RunSpec:
    return RunSpec(key="1-1", command=("true",), uid=uid, user=user, groups=None)


def test_its_groups_are_those_that_its_user_has_now() -> None:
    """Also of one that nobody registered, which is named after its number."""
    root = pwd.getpwuid(0)
    made = launch.with_groups(run_of(root.pw_name, 0))
    assert (made.gid, (made.groups or ())[0]) == (root.pw_gid, root.pw_gid)
    assert launch.with_groups(run_of(f"uid-{NOBODY}", NOBODY)).groups == (NOBODY,)


def test_nothing_runs_as_whoever_got_the_number_of_its_user() -> None:
    """The account was removed while it waited, and another one has its number: what it wrote is not for that one."""
    with pytest.raises(launch.Refused, match="it is ann's, and user 0 is root now"):
        launch.with_groups(run_of("ann", 0))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"vcore": 500}, {"FAIRLEAD_CPU": "1"}),
        ({"vcore": 2500, "memory": 2**30}, {"FAIRLEAD_CPU": "3", "FAIRLEAD_MEMORY": "1073741824"}),
        ({"gpu": 1}, {}),
    ],
)
def test_a_command_finds_what_it_may_use(service: Service, asked: dict[str, int], found: dict[str, str]) -> None:
    """It started a thread for each core of the machine, and was slowed down to those that it had asked for."""
    key = service.submit(resources=Resources(asked), env={"FAIRLEAD_CPU": "64"} if found else {})
    env = service.place._run_spec(service.job(key), f"{key}-1").env
    assert {name: env[name] for name in ("FAIRLEAD_CPU", "FAIRLEAD_MEMORY") if name in env} == found


def test_whose_user_is_not_to_be_found_is_tried_again() -> None:
    """What knows the accounts may just be away; its home and groups would be wrong meanwhile."""
    with pytest.raises(BlockingIOError, match=f"it is ann's, and user {NOBODY} is uid-{NOBODY} now"):
        launch.with_groups(run_of("ann", NOBODY))


NO_FILE_OF_PYTHON = """
import sys
sys.path.append({local!r})
from supervisor import child
sys.path.clear()
sys.meta_path.clear()
try:
    child._execute([{command!r}], {{"PATH": "/usr/local/bin:/usr/bin:/bin"}})
except child.Refusal as refusal:
    print(refusal.status)
"""


@pytest.mark.parametrize(("command", "said"), [("true", ""), ("no-such-command", "127"), ("/", "126")])
def test_a_command_is_begun_without_another_file_of_python(command: str, said: str) -> None:
    """A Python below /root, as tools of today put it there, is not to be read by the user whose rights are left."""
    local = Path(launch.__file__).parent
    script = NO_FILE_OF_PYTHON.format(local=str(local), command=command)
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, said, "")
