"""One value of a queue file changes, and nothing else of its text."""

from __future__ import annotations

import pytest
import yaml

from fairlead.web.queue_edit import NotThere, with_value

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
    assert found == value
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
