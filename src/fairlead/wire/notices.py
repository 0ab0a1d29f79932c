"""Messages about a job, when it starts and when it ends: where they go, and when.

Decides which addresses there are. Never sends anything. Invariant: an address that passes is of one kind: a mailbox, a
URL, or a command.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from fairlead.wire.fields import Request, Shape, one_line, said

What = Literal["start", "end", "fail", "parts"]
Kind = Literal["command", "mail", "url"]
ALL_KINDS: frozenset[str] = frozenset(get_args(Kind))
MOST = 8
_MAILBOX = re.compile(r"[^\s@<>,;:\"'\\()-][^\s@<>,;:\"'\\()]*(@[A-Za-z0-9.-]+)?")


def kind_of(to: str) -> Kind:
    """Which kind an address is."""
    return "mail" if to.startswith("mail:") else "url" if to.startswith(("http://", "https://")) else "command"


def address(to: str) -> str:
    """An address that something can be sent to. Raises `ValueError`."""
    one_line(to)
    if not to.strip():
        raise ValueError("is empty; write mail:ADDRESS, a URL that begins with https://, or a command")
    if to.lower().startswith(("mail:", "http://", "https://")):
        # As people and programs write them, HTTPS://example.org/hook is no command.
        scheme, colon, rest = to.partition(":")
        to = f"{scheme.lower()}{colon}{rest}"
    if kind_of(to) == "command" and _NO_COMMAND.fullmatch(to):
        raise ValueError(f"{to!r} is no command; write mail:ann@example.org, https://example.org/hook, or a command")
    if kind_of(to) == "mail" and not _MAILBOX.fullmatch(to.removeprefix("mail:")):
        raise ValueError(f"{to!r} names no mailbox; write mail:ann@example.org, or mail:ann")
    if kind_of(to) == "url" and not _is_url(to):
        raise ValueError(f"{to!r} is no URL; write https://example.org/hook")
    return to


_NO_COMMAND = re.compile(r"mail|e-?mail:?\S*|url|(?i:begin|start|end|fail|all)|[^\s/]+@[^\s/]+|(?!file:)[a-z]+:\S*")
"""What is meant to be an address, or a moment (as Slurm's `--mail-type` has it): a shell would find no such command."""


def _is_url(to: str) -> bool:
    try:
        parts = urlsplit(to)
        # The port is read only here, and may be no number, or too large a one.
        return bool(parts.hostname) and (parts.port is None or parts.port > 0) and " " not in to
    except ValueError:
        return False


def when(words: list[What]) -> list[What]:
    """When something is sent, in words that say it. Raises `ValueError`."""
    if words == ["parts"]:
        raise ValueError("parts alone says not when; add start, end or fail")
    return words


class NoticeDraft(Request, frozen=True, kw_only=True):
    """One of them."""

    CHECKS: ClassVar = {"to": address, "on": when}

    to: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2048,
            description="mail:ADDRESS, a URL that is sent JSON, or a command that a shell runs as the user.",
        ),
    ]
    on: Annotated[
        list[What],
        Meta(min_length=1, max_length=4),
        said("At each start, at its end, at an end otherwise than well; of an array as a whole, or of its `parts`."),
    ] = msgspec.field(default_factory=lambda: ["end"])


Notices = Annotated[list[NoticeDraft], Meta(max_length=MOST)]


class Notice(Shape, frozen=True, kw_only=True):
    """One of them, as it is shown: of a URL only the host, because the rest may be a secret."""

    to: str
    on: list[What]


def shown(to: str) -> str:
    """An address as others may see it."""
    return f"{urlsplit(to).scheme}://{urlsplit(to).hostname}/..." if kind_of(to) == "url" else to
