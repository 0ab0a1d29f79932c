"""Scripts that are handed to `submit`: found, and read once.

Decides whether a word names a script, and what counts more where its head (`directives`) and the command line
contradict each other. Never runs it. Invariant: the text that is sent is the one whose directives were read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from fairlead.cli import app, jobfields
from fairlead.cli.app import complain, wrong_usage
from fairlead.cli.environment import given as environment_of
from fairlead.wire.streams import MOST_SCRIPT

_DASHES = "fairlead.dashes"
INPUT = "-"
"""The word for a script on standard input, as `sbatch <<END` has it."""
_PIPED = "standard input"
_DIRECTIVES = (b"\n#FAIRLEAD ", b"\n#SBATCH ", b"\n#PBS ", b"\n#BSUB ", b"\n#$ -")


class Script(NamedTuple):
    """A script, and what its directives say as a file of jobs would say it."""

    words: Sequence[str]
    """Its name and its arguments."""
    text: str
    stated: dict[str, Any]
    others: dict[str, Any]
    """Options that its directives give and that are no fields of a job."""
    places: dict[str, str]
    """Where its directives say each field."""


class ScriptCommand(app.Command):
    """A command whose first word may be a script; it remembers whether `--` stood before that."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As usual."""
        given = list(args)
        try:
            rest = super().parse_args(ctx, args)
        except click.BadParameter as error:
            if error.param is not None and error.param.name == "priority":
                said = f"{error.message.rstrip('.')}; a queue is named by -q"
                raise click.BadParameter(said, ctx, error.param, error.param_hint) from None
            raise
        words = ctx.params.get("command") or ()
        ctx.meta[_DASHES] = given[: len(given) - len(words)][-1:] == ["--"]
        if not ctx.meta[_DASHES]:
            self._say_what_comes_too_late(words)
        return rest

    def _say_what_comes_too_late(self, words: Sequence[str]) -> None:
        known = {text for each in self.params for text in each.opts if text.startswith("--")}
        late = [word for word in words[1:] if word.partition("=")[0] in known]
        if late:
            complain(f"{late[0]} stands behind the command, so it goes to that; options of {self.name} come before it")


def read_script(ctx: click.Context, words: Sequence[str], *, directives: bool) -> Script | None:
    """The script that the first word names; None: it is a command. What follows `--` is always one.

    Raises `Failure` (usage) for a directive that makes no sense, with its place.
    """
    path, dashes = words[0], ctx.meta.get(_DASHES)
    if path == INPUT and not dashes:
        return _of_input(ctx, words, directives=directives)
    if not os.path.isfile(path):
        if not dashes:
            _require_a_command(words, ctx.params.get("cwd"))
        return None
    if "/" not in path and _is_another_in_path(path):
        return None
    try:
        with open(path, "rb") as opened:
            content = opened.read(MOST_SCRIPT + 1)
    except OSError:
        return None  # What runs it will say why.
    if not content.startswith(b"#!"):
        if not dashes and not os.access(path, os.X_OK):
            said = f"{path} is not marked executable, and does not begin with #! as a script does"
            raise wrong_usage(f"{said}; write #!/bin/sh in its first line, or: -- sh {path}")
        return None
    if dashes:
        if directives and any(each in content for each in _DIRECTIVES):
            complain(f"{path} has directives; they count only where no -- stands before it")
        return None
    return _checked(ctx, words, path, content, directives=directives)


def _require_a_command(words: Sequence[str], cwd: str | None) -> None:
    """Raises `Failure` (usage) where the first word is none: a path, or what is left over before a `--`."""
    path = words[0]
    if os.path.isdir(os.path.join(cwd or ".", path)) and not ("/" not in path and _in_path(path)):
        raise wrong_usage(f"{path} is a directory; give a command, or a script")
    if ("/" in path or path.endswith(".sh") or "--" in words) and not _may_be_there(path, cwd):
        said = f"there is no file {path!r}, and no command of that name"
        raise wrong_usage(f"{said}; what is to be looked for only when the job begins stands behind --")


def has_dashes(ctx: click.Context) -> bool:
    """Whether `--` stood before the command, or where one should be."""
    return bool(ctx.meta.get(_DASHES))


def _of_input(ctx: click.Context, words: Sequence[str], *, directives: bool) -> Script:
    """The script that is piped in. Raises `Failure` (usage) where that is none, or belongs to the job."""
    if ctx.command.name != "submit":
        said = f"{ctx.command.name}: what is piped in is for the job to read"
        raise wrong_usage(f"{said}; write: fairlead submit --wait -")
    content = sys.stdin.buffer.read(MOST_SCRIPT + 1)
    if not content:
        raise wrong_usage(f"{_PIPED} is empty; give a command (after --), a script, or --file FILE")
    if not content.startswith(b"#!"):
        raise wrong_usage(f"{_PIPED} holds no script: its first line does not begin with #!, such as #!/bin/sh")
    return _checked(ctx, ("script", *words[1:]), _PIPED, content, directives=directives)


def _checked(ctx: click.Context, words: Sequence[str], path: str, content: bytes, *, directives: bool) -> Script:
    _require_lines_of_unix(path, content)
    if len(content) > MOST_SCRIPT:
        said = f"{path} is larger than {MOST_SCRIPT >> 10} KiB, too large to be kept"
        raise wrong_usage(said if path == _PIPED else f"{said}; run it as: -- {path}")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        said = f"{path}:{line}: byte {column} is not UTF-8; write it so, as `iconv -f LATIN1 -t UTF-8` does"
        said += "" if path == _PIPED else f", or have it run as it is, without its directives: -- {path}"
        raise wrong_usage(said) from None
    if not directives:
        return Script(words, text, {}, {}, {})
    from fairlead.cli.directives import read_directives

    return Script(words, text, *read_directives(ctx.command, path, text))


def _require_lines_of_unix(path: str, content: bytes) -> None:
    """Raises `Failure` (usage) where the name of the interpreter would end with a carriage return."""
    if content.partition(b"\n")[0].endswith(b"\r"):
        said = f"the lines of {path} end as in Windows, so that nothing finds the interpreter of the first one"
        raise wrong_usage(said if path == _PIPED else f"{said}; sed -i 's/\\r$//' {path} puts that right")


def fields_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """What options say of a job, as a file would say it. Raises `Failure` (usage)."""
    found = jobfields.stated(params)
    if env := environment_of(params, found.get("env", {})):
        found["env"] = env
    return found


def joined(weaker: Mapping[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """Both; where they contradict each other, the stronger. Pairs are joined by name."""
    found = dict(weaker)
    for name, value in stronger.items():
        old = found.get(name)
        found[name] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return found


def by_source(ctx: click.Context, given: Mapping[str, Any], *, typed: bool) -> dict[str, Any]:
    """Those of the options that were typed, or those that were not."""
    return {
        name: value
        for name, value in given.items()
        if (ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE) is typed
    }


def _may_be_there(path: str, cwd: str | None) -> bool:
    """Whether it is in the directory that the job runs in, or in the path."""
    return os.path.exists(os.path.join(cwd or ".", path)) or _in_path(path)


def _in_path(name: str) -> bool:
    import shutil

    return shutil.which(name) is not None


def _is_another_in_path(name: str) -> bool:
    """Whether the path has a program of this name that is not the file of this name here."""
    import shutil

    found = shutil.which(name)
    return found is not None and not os.path.samefile(found, name)
