"""The directives at the head of a script: `#FAIRLEAD --cpu 4`, `#SBATCH -c 4`, `#PBS -l ncpus=4`.

Decides which lines are directives and what they say, by the options of the command itself. Never reads a file.
Invariant: a directive counts only before the first command of the script; ours count more than those for others, of
which one scheduler's count alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

import click

from fairlead.cli import bsub, jobfields, qsub, sbatch
from fairlead.cli.app import Failure, complain, wrong_usage
from fairlead.cli.scripts import by_source, fields_of, joined

_OURS = "#FAIRLEAD"
_THEIRS: Final = (sbatch.Options, qsub.Pbs, bsub.Options, qsub.GridEngine)
"""Those of others; where a script has lines for several, the first of them counts."""
_WORDS: Final = frozenset({_OURS, *(each.named for each in _THEIRS)})
_LONG: Final = tuple(sorted(word.removeprefix("#") for word in _WORDS if len(word) > 4))
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
    batch = _for_whom(path, text)
    unread: list[str] = []
    ours: list[tuple[str, list[str]]] = []
    for number, line, counts in _directives(text, batch):
        where = f"{path}:{number}"
        if not counts:
            unread.append(str(number))
            continue
        if line.startswith(_OURS):
            ours.append((where, _words(_without_comment(line.removeprefix(_OURS)), where, comments=False)))
        else:
            batch.add(_words(line.removeprefix(batch.named), where, comments=True), where)
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
    if meant := list(_misspelt(text)):
        complain(f"{path}: lines that look like directives and are none", meant)
    if unread:
        complain(f"{path}: directives after the first command mean nothing: line {', '.join(unread)}")
    if batch.unlike_dependency:
        said = "without it the job would not wait; --ignore-directives reads none"
        raise wrong_usage(f"{batch.unlike_dependency}; {said}")
    if batch.unknown:
        mean = "means" if len(batch.unknown) == 1 else "mean"
        named = f"{len(batch.unknown)} of its {batch.named} options {mean} nothing here; --ignore-directives reads none"
        complain(f"{path}: {named}", batch.unknown)
    return stated, others, places


def _for_whom(path: str, text: str) -> sbatch.Options:
    """What reads the lines for another scheduler."""
    lines = text.splitlines()
    found = [each() for each in _THEIRS if any(_begins(line, each.named) for line in lines)]
    if len(found) > 1:
        complain(f"{path}: its {found[0].named} lines count, and those for other schedulers do not")
    return found[0] if found else sbatch.Options()


def _misspelt(text: str) -> Iterator[str]:
    """What is to be said of lines at the head of a script such as `#SBACTH --mem=4G`."""
    from difflib import get_close_matches

    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            return
        found = re.match(r"#([A-Za-z]{4,9})[ \t]+-", line)
        if found and f"#{found[1]}" not in _WORDS and (close := get_close_matches(found[1].upper(), _LONG, 1, 0.75)):
            yield f"line {number}: #{found[1]}: did you mean #{close[0]}?"


def _begins(line: str, named: str) -> bool:
    # `#SBATCH--mem=4G` is one for Slurm too; `#$` begins comments of many kinds.
    rest = r"[ \t]*-[A-Za-z]" if named == "#$" else r"([ \t-]|$)"
    return re.match(re.escape(named) + rest, line) is not None


def _directives(text: str, batch: sbatch.Options) -> Iterator[tuple[int, str, bool]]:
    """Number and text of each directive, and whether it counts where it stands."""
    head = True
    for number, line in enumerate(text.splitlines(), 1):
        if _begins(line, _OURS):
            yield number, line, head
        elif _begins(line, batch.named):
            yield number, line, head or batch.anywhere
        elif line.strip() and not line.lstrip().startswith("#"):
            head = False


def _words(text: str, where: str, *, comments: bool) -> list[str]:
    try:
        return shlex.split(text, comments=comments)
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
