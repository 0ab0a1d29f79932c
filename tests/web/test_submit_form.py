"""What is typed into the form becomes the draft that the command line would send."""

from __future__ import annotations

import pytest

from fairlead.web.submit_page import draft_of


def test_a_command_with_everything() -> None:
    draft = draft_of(
        {
            "command": "python3 'my file.py' --x",
            "queue": "root.batch",
            "name": "n",
            "cpu": "0.5",
            "memory": "4Gi",
            "gpu": "1",
            "priority": "-3",
            "limit": "1h 30m",
            "array": "1-4%2",
            "cwd": "/tmp",
            "after": "12, 13",
            "env": "A=1\nB=x=y\n",
            "idle": "1",
            "token": "7",
            "act": "submit",
        }
    )
    assert draft == {
        "command": ["python3", "my file.py", "--x"],
        "queue": "root.batch",
        "name": "n",
        "resources": {"cpu": 0.5, "memory": 4 * 2**30, "gpu": 1},
        "priority": -3,
        "time_limit_ms": 5_400_000,
        "array": "1-4%2",
        "cwd": "/tmp",
        "after": [{"key": "12"}, {"key": "13"}],
        "env": {"A": "1", "B": "x=y"},
        "idle": True,
    }


def test_several_lines_are_a_script() -> None:
    assert draft_of({"command": "echo a\r\necho b"}) == {"command": ["script"], "script": "#!/bin/sh\necho a\necho b\n"}
    assert draft_of({"command": "#!/usr/bin/env python3"})["script"] == "#!/usr/bin/env python3\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Command: say what is to run"),
        ({"command": "echo 'x"}, "Command: No closing quotation"),
        ({"command": "x", "memory": "much"}, "memory: 'much' is no amount; write for example 4Gi"),
        ({"command": "x", "cpu": "two"}, "cpu: 'two' is no amount"),
        ({"command": "x", "limit": "soon"}, "Time limit: "),
        ({"command": "x", "priority": "1.5"}, "Priority: '1.5' is no whole number"),
        ({"command": "x", "env": "A"}, "Variables: 'A' is not NAME=value"),
    ],
)
def test_what_cannot_be_read_names_its_field(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said[:20]) as caught:
        draft_of(given)
    assert str(caught.value).startswith(said)
