"""What the single fields of a request may hold.

Decides which texts, amounts and names are taken in; everything else is refused with a sentence that says what to write.
Never looks at more than one field. Invariant: what passes can be written down, given to a process, and read back.
"""

from __future__ import annotations

import posixpath
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from fairlead.core.resources import INT64_MAX
from fairlead.core.specs import PRIORITY_MAX, PRIORITY_MIN, TAG_APP_CREATION_TIME, TAG_CREATION_TIME, TAG_FORCE_CREATE

_OWN_NAMES = frozenset({"FAIRLEAD_KEY", "FAIRLEAD_NAME", "FAIRLEAD_QUEUE", "FAIRLEAD_ATTEMPT"})
_RESERVED_TAGS = frozenset({TAG_FORCE_CREATE, TAG_CREATION_TIME, TAG_APP_CREATION_TIME})
_RESOURCE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?")
_HINTS = {
    "cpu": "the resource is called vcore, in thousandths of a core (2 cores: 2000)",
    "cpus": "the resource is called vcore, in thousandths of a core (2 cores: 2000)",
    "mem": "the resource is called memory, in bytes",
    "ram": "the resource is called memory, in bytes",
    "gpus": "the resource is called gpu",
}


def clean_text(text: str) -> str:
    """A text that can be written down and read back. Raises `ValueError`."""
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode, without half of a surrogate pair") from None
    return text


def one_line(text: str) -> str:
    """A text without line breaks or other control characters. Raises `ValueError`."""
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise ValueError("must not contain control characters")
    return clean_text(text)


def absolute(path: str) -> str:
    """The path of a file from the root. Raises `ValueError`."""
    if not posixpath.isabs(path):
        raise ValueError("must be an absolute path, such as /home/ada/project")
    return clean_text(path)


def environment(env: dict[str, str]) -> dict[str, str]:
    """Environment variables that a process can be given. Raises `ValueError`."""
    for name in env:
        if not name or "=" in name:
            raise ValueError(f"{name!r} is no name of an environment variable")
        if name in _OWN_NAMES:
            raise ValueError(f"{name} is set by the service; leave it out")
    if sum(len(n) + len(v) for n, v in env.items()) > 131_072:
        raise ValueError("is larger than 128 KiB in total; put large values into a file")
    return env


def amounts(resources: dict[str, int]) -> dict[str, int]:
    """Amounts by resource, at least one of them above 0. Raises `ValueError`."""
    for name in resources:
        if name in _HINTS:
            raise ValueError(f"there is no resource {name!r}: {_HINTS[name]}")
        if not _RESOURCE.fullmatch(name) or len(name) > 253:
            raise ValueError(f"{name!r} is no name of a resource; use letters, digits and - _ . /")
    if not any(resources.values()):
        raise ValueError("asks for nothing; ask for some vcore (1000 is one core), or leave resources out")
    return resources


def tags(tags: dict[str, str]) -> dict[str, str]:
    """Tags that a user may set. Raises `ValueError`."""
    for name in tags:
        if name in _RESERVED_TAGS:
            raise ValueError(f"the tag {name!r} is reserved for the service; choose another name")
    return tags


def named(labels: dict[str, str]) -> dict[str, str]:
    """Labels, each with a name. Raises `ValueError`."""
    if "" in labels:
        raise ValueError("a label needs a name")
    return labels


def command(command: list[str]) -> list[str]:
    """A program with its arguments. Raises `ValueError`."""
    if not command[0]:
        raise ValueError("the program is an empty text; name one, such as /bin/sh")
    if sum(len(part) for part in command) > 1_048_576:
        raise ValueError("is longer than 1 MiB in total; put the data into a file")
    return command


Text = Annotated[str, AfterValidator(clean_text)]
Line = Annotated[str, Field(max_length=256), AfterValidator(one_line)]
Labels = Annotated[dict[Line, Line], Field(max_length=64), AfterValidator(named)]
Amount = Annotated[int, Field(ge=0, le=INT64_MAX)]
Priority = Annotated[int, Field(ge=PRIORITY_MIN, le=PRIORITY_MAX, description="Any 32-bit integer; higher wins.")]
