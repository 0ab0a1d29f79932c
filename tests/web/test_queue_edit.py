"""One value of a queue file changes, and nothing else of its text."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import cast

import pytest
import yaml
from testbed.answering import made

from fairlead.client.errors import NoService
from fairlead.web.frame import Page
from fairlead.web.live import Live
from fairlead.web.queue_edit import NotThere, value_of, with_value
from fairlead.web.queues_page import _Queues
from fairlead.web.viewer import Viewer
from fairlead.wire.cluster import Queue

FILE = """\
# Ours.
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: Batch        # for the night
            resources:
              max: {vcore: "4", memory: 8Gi}

          # A comment of the next one.
          - name: teams
            properties:
              priority.fence: "true"
            queues:
              - name: a
                submitacl: "*"
"""


def queue(text: str, path: str) -> dict[str, object]:
    found = yaml.safe_load(text)["partitions"][0]["queues"]
    for name in path.split("."):
        here = next(each for each in found if each["name"].lower() == name)
        found = here.get("queues", [])
    return dict(here)


@pytest.mark.parametrize(
    ("path", "keys", "value"),
    [
        ("root.batch", ("resources", "max", "vcore"), "2500m"),
        ("root.batch", ("resources", "max", "gpu"), "1"),
        ("root.batch", ("properties", "priority.offset"), "-5"),
        ("root.teams", ("properties", "priority.offset"), "7"),
        ("root.teams.a", ("resources", "max", "vcore"), "3000m"),
    ],
)
def test_the_value_is_there_and_all_else_as_it_was(path: str, keys: tuple[str, ...], value: str) -> None:
    changed = with_value(FILE, path, keys, value)
    found: object = queue(changed, path)
    for key in keys:
        assert isinstance(found, dict)
        found = found[key]
    assert str(found) == value
    assert {line.strip() for line in FILE.splitlines() if "#" in line} <= {
        line.strip() for line in changed.splitlines()
    }
    for other in ("root.batch", "root.teams", "root.teams.a"):
        if not (path + ".").startswith(other + ".") and not (other + ".").startswith(path + "."):
            assert queue(changed, other) == queue(FILE, other)
    assert with_value(changed, path, keys, "9") != changed


def test_a_queue_that_the_file_has_not_is_said() -> None:
    with pytest.raises(NotThere, match=r"no queue root\.made"):
        with_value(FILE, "root.made", ("properties", "priority.offset"), "1")
    with pytest.raises(NotThere, match="cannot be read"):
        with_value("a: [", "root", ("x",), "1")


ODD = """\
%YAML 1.1
---
partitions:
- name: default
  queues:	# without a root of its own
  - {name: a, properties: &x {priority.offset: "1"}}
  - {name: b, properties: &x {priority.offset: "2"}}
...
"""


def test_a_file_that_the_service_takes_is_taken() -> None:
    """Its root left out, a queue on one line, a name of an anchor used twice, a tab before a comment, its end."""
    changed = with_value(ODD, "root.B", ("properties", "priority.offset"), "7")
    assert changed == ODD.replace('"2"', "7")
    with pytest.raises(NotThere, match="by hand"):
        with_value(ODD, "root", ("properties", "priority.offset"), "7")


@pytest.mark.parametrize(
    ("path", "keys", "value"),
    [
        ("root.batch", ("resources", "max", "vcore"), "4"),
        ("root.teams", ("properties", "priority.fence"), "true"),
        ("root.teams", ("properties", "priority.offset"), ""),
        ("root.batch", ("properties", "priority.offset"), ""),
        ("root.batch", ("resources",), ""),
        ("root.made", ("properties", "priority.offset"), ""),
    ],
)
def test_what_the_file_says_is_read(path: str, keys: tuple[str, ...], value: str) -> None:
    assert value_of(FILE, path, keys) == value
    assert value_of("{", path, keys) == ""


@pytest.mark.parametrize(("file", "shown"), [('{priority.offset: "-1000"}', "-1000"), ("{}", "0"), (None, None)])
async def test_the_slider_of_the_offset_stands_where_the_file_has_it(file: str | None, shown: str | None) -> None:
    """It stood at 0, as if that were so now; who may not read the file has none."""

    async def config() -> object:
        if file is None:
            raise NoService("no")
        queues = f"[{{name: root, queues: [{{name: a, properties: {file}}}]}}]"
        return SimpleNamespace(text=f"partitions: [{{name: default, queues: {queues}}}]")

    async def trees(*_: object) -> list[Queue]:
        a = made(Queue, path="root.a", max=None, children=[])
        return [made(Queue, path="root", max={"cpu": 4}, children=[a])]

    viewer = cast(Viewer, SimpleNamespace(client=SimpleNamespace(config=config)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlead.web.queues_page.trees_of", trees)
        form = await _Queues(viewer, Live(), cast(Page, None), "root.a").form()
    found = re.search(r'min="(\S+)" max="(\S+)" step="1" value="(\S+)" data-act="suppose" data-what="offset"', form)
    assert (found[3] if found else None) == shown
    assert found is None or int(found[1]) <= int(found[3]) <= int(found[2])
