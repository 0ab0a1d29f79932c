"""The directives at the head of a script: `#FAIRLEAD --cpu 4`, `#SBATCH -c 4`.

Decides which lines are directives and what they say, by the options of the command itself. Never reads a file.
Invariant: a directive counts only before the first command of the script; ours count more than those of Slurm.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import click

from fairlead.cli import jobfields, sbatch
from fairlead.cli.app import Failure, complain, wrong_usage
from fairlead.cli.scripts import by_source, fields_of, joined

_OURS, _SLURMS = "#FAIRLEAD", "#SBATCH"
_NOT_IN_SCRIPTS = frozenset(
    {"file", "output", "quiet", "ignore_directives", "pty", "detach_keys", "socket", "url", "context", "ca"}
)
"""Options of `submit` and `run` that are about the call and not about the job."""


def read_directives(
    command: click.Command, path: str, text: str
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """What they say of the job, as a file of jobs would say it; which options they give that are no fields; and where
    each field is said.

    Raises `Failure` (usage) for a line that makes no sense, with its place.
    """
    stated: dict[str, Any] = {}
    others: dict[str, Any] = {}
    places: dict[str, str] = {}
    batch = sbatch.Options()
    unread: list[str] = []
    ours: list[tuple[str, list[str]]] = []
    for number, line, counts in _directives(text):
        where = f"{path}:{number}"
        if not counts:
            unread.append(str(number))
            continue
        words = _words(line, where)
        if line.startswith(_OURS):
            ours.append((where, words))
        else:
            batch.add(words, where)
    for where, words in (*batch.translated(_flags(command)), *ours):
        params = _parsed(command, words, where)
        names = {field.name for field in jobfields.FIELDS} | {"env_file", "export"}
        try:
            found = fields_of({name: value for name, value in params.items() if name in names})
        except Failure as wrong:
            raise Failure(f"{where}: {wrong.message}", wrong.status, wrong.details) from None
        stated = joined(stated, found)
        places |= dict.fromkeys(found, where)
        others |= {name: value for name, value in params.items() if name not in names}
    if unread:
        complain(f"{path}: directives after the first command mean nothing: line {', '.join(unread)}")
    if unlike := next((each for each in batch.unknown if ": --dependency=" in each), ""):
        raise wrong_usage(f"{unlike}; without it the job would not wait; --ignore-directives reads none")
    if batch.unknown:
        complain(
            f"{path}: {len(batch.unknown)} of its #SBATCH options mean nothing here; --ignore-directives reads none",
            batch.unknown,
        )
    return stated, others, places


def _directives(text: str) -> Iterator[tuple[int, str, bool]]:
    """Number and text of each directive, and whether it stands before the first command."""
    head = True
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith((_OURS, _SLURMS)) and line.removeprefix(_OURS).removeprefix(_SLURMS)[:1] in ("", " ", "\t"):
            yield number, line, head
        elif line.strip() and not line.lstrip().startswith("#"):
            head = False


def _words(line: str, where: str) -> list[str]:
    try:
        if line.startswith(_OURS):
            return shlex.split(_without_comment(line.removeprefix(_OURS)))
        return shlex.split(line.removeprefix(_SLURMS), comments=True)
    except ValueError as error:
        raise wrong_usage(f"{where}: {error}") from None


def _without_comment(text: str) -> str:
    """The text up to where an unquoted word begins with `#`, as in a shell; `shlex` also ends at one within a word."""
    quote, escaped, begins = "", False, True
    for at, letter in enumerate(text):
        if letter == "#" and begins:
            return text[:at]
        begins = letter in " \t" and not quote and not escaped
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = quote != "'"
        elif letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            quote = letter
    return text


def _flags(command: click.Command) -> frozenset[str]:
    return frozenset(flag for param in command.params for flag in param.opts)


def _parsed(command: click.Command, words: list[str], where: str) -> dict[str, Any]:
    """The options of one line that were given. Raises `Failure` (usage)."""
    try:
        ctx = command.make_context(command.name, list(words))
    except click.ClickException as error:
        raise wrong_usage(f"{where}: {error.format_message()}") from None
    typed = by_source(ctx, ctx.params, typed=True)
    if typed.pop("command", ()):
        raise wrong_usage(f"{where}: only options can stand here, not {' '.join(words)!r}")
    for param in ctx.command.params:
        if param.name in typed and param.name in _NOT_IN_SCRIPTS:
            raise wrong_usage(f"{where}: {param.opts[0]} is about the call, not about the job; type it there")
    return typed
