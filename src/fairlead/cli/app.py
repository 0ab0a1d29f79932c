"""The frame of the command line: help that reads the same everywhere, errors in one sentence, the way to the service.

Decides how commands are declared, how they end (the exit statuses that scripts rely on), and which options all clients
share. Never talks to the service itself. Invariant: whatever goes wrong is one sentence on standard error and an exit
status that never changes its meaning; a traceback means a mistake in this program.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial, wraps
from math import isfinite
from typing import Any, Final, NoReturn, TypeVar

import click

from fairlead.cli import completion
from fairlead.client.address import find_address
from fairlead.client.errors import ClientError, Misconfigured, Refused, Unreachable
from fairlead.client.sync import Client

_F = TypeVar("_F", bound=Callable[..., Any])
Status = int | None
"""What a command returns: an exit status, or None for 0."""


def _output(*formats: str, flags: Sequence[str] = ("--output", "-o")) -> Callable[[_F], _F]:
    def declare(function: _F) -> _F:
        shown, said = ", ".join(formats), f"The same as {flags[-1]} json."
        chosen = click.option(
            *flags, "output", type=click.Choice(formats), default=formats[0], metavar="FORMAT", help=f"One of {shown}."
        )
        return chosen(click.option("--json", "output", flag_value="json", help=said)(function))

    return declare


list_output = _output("table", "wide", "json", "yaml", "name")
"""The format of a list, as `output`: `wide` cuts nothing, `name` prints the name of each alone."""
show_output = _output("text", "json", "yaml")
"""The format of anything else."""
key_output = _output("text", "json", "yaml", flags=("--format",))
"""The format of what is submitted: there --output is a file of the job, as in Slurm."""
report_output = _output("text", "json")
"""The format of what is made up of lines, each of which may be JSON."""
_NO_KEY = "an empty key names no job; is a variable not set?"


def _named(ctx: click.Context, _param: click.Parameter, value: Any) -> Any:
    """The key, the keys or None, as given. Raises `Failure` (usage) for an empty one."""
    if any(not key.strip() for key in ([value] if isinstance(value, str) else value or ())):
        raise wrong_usage(f"{ctx.info_name}: {_NO_KEY}")
    return value


_key = partial(click.argument, shell_complete=completion.keys, callback=_named)
key_argument = _key("key", metavar="KEY", help="Key of the job.")


def key_or_none(text: str) -> Callable[[_F], _F]:
    """The argument `key`, which may be left out; `text` says what that means."""
    return _key("key", required=False, metavar="[KEY]", help=text)


def keys_argument(text: str, *, required: bool = True) -> Callable[[_F], _F]:
    """The argument `keys`."""
    metavar = "KEY..." if required else "[KEY...]"
    return _key("keys", nargs=-1, required=required, metavar=metavar, help=text)


class Number(click.FloatRange):
    """A number with an end: `nan` is in every range of click's, and `inf` in those without an end."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """As usual. Raises `click.BadParameter`."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value!r} is no number to count with.", param, ctx)
        return number


SECONDS_BETWEEN = Number(0.2, 86_400)
"""Between two looks: a day at most, since no clock waits for just any number."""
queue_option = click.option(
    "--queue", "-q", metavar="QUEUE", help="Only this queue and those below it.", shell_complete=completion.queues
)
_socket_option = click.option(
    "--socket", metavar="PATH", help="Unix socket of the service (else FAIRLEAD_SOCKET, else the usual place)."
)
_context_option = click.option(
    "--context", metavar="NAME", help="A service of your configuration (else FAIRLEAD_CONTEXT, else the current one)."
)
_url_option = click.option(
    "--url", metavar="URL", help="Address of the service over TCP (else FAIRLEAD_URL); needs FAIRLEAD_TOKEN."
)
_ca_option = click.option(
    "--ca", metavar="FILE", help="Believe the certificates in FILE over https (else FAIRLEAD_CA, else the system's)."
)
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True}


class Command(click.Command):
    """One command. `examples` stand below its help as they are written."""

    def __init__(self, name: str | None, *, examples: str = "", **given: Any) -> None:
        settings = _SETTINGS | (given.pop("context_settings", None) or {})
        super().__init__(name, context_settings=settings, **given)
        self.examples = examples
        for option in self.params:
            if isinstance(option, click.Option) and option.default == "":
                option.show_default = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As usual; what is wrong is said of this command, also where it is a word of other tools."""
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from fairlead.cli import foreign

            # `whatif submit` has few of the options that `submit` has.
            is_below = ctx.parent is not None and ctx.parent.parent is not None
            if not is_below and (said := foreign.about_option(self.name or "", error.option_name, typed)):
                raise click.UsageError(said, ctx) from None
            close = get_close_matches(error.option_name, error.possibilities or (), 3, _ALIKE)
            raise click.NoSuchOption(error.option_name, possibilities=close, ctx=ctx) from None
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples line by line."""
        if self.examples:
            formatter.write_paragraph()
            lines = self.examples.strip("\n").splitlines()
            formatter.write("".join(f"{line}\n" for line in ("Examples:", *(f"  {line}".rstrip() for line in lines))))


class Group(click.Group):
    """A group of commands; the outermost one turns everything that goes wrong into a sentence and a status."""

    command_class = Command

    def __init__(self, name: str | None, **given: Any) -> None:
        super().__init__(name, context_settings=_SETTINGS, no_args_is_help=True, **given)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The names, in the order in which they were declared."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, each with the whole of its first sentence."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(limit=_SENTENCE)) for name, each in commands if each])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. That the reader of its output has gone does not come to click, which makes it a failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return _reader_gone()

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run the command line and leave with its exit status."""
        extra.pop("standalone_mode", None)
        try:
            status = super().main(args=args, prog_name=prog_name, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BrokenPipeError:
            status = _reader_gone()
        except Failure as failure:
            status = failure.status
            complain(failure.message, failure.details)
        except ClientError as error:
            status = status_of(error)
            complain(error.message, error.details)
        except click.ClickException as error:
            status = _usage(error)
        except (KeyboardInterrupt, click.Abort):
            status = INTERRUPTED
        except OSError as error:
            if error.errno not in _REFUSED:
                raise
            status = FAILED
            complain(f"the machine refused: {error}; {_REFUSED[error.errno]}, then try again")
        sys.exit(status or 0)


command = partial(click.command, cls=Command)
"""Declare a command. Its docstring is its help; `examples` stand below it as they are written."""


def connected(function: Callable[..., Status]) -> Callable[..., Status]:
    """Give a command a `Client` as its first argument, and the options --socket, --url, --context and --ca."""

    @wraps(function)
    def run(connect: Callable[[], Client], *args: Any, **given: Any) -> Status:
        return function(connect(), *args, **given)

    return connecting(run)


def connecting(function: Callable[..., Status]) -> Callable[..., Status]:
    """The same, with what makes the `Client`, for a command that works without. It raises `Misconfigured`."""

    @_socket_option
    @_url_option
    @_context_option
    @_ca_option
    @wraps(function)
    def run(
        *args: Any, socket: str | None, url: str | None, context: str | None, ca: str | None, **given: Any
    ) -> Status:
        return function(lambda: Client(find_address(socket, url, context, ca=ca)), *args, **given)

    return run


def _reader_gone() -> int:
    """Status of a command whose reader has gone (`| head`): that is its choice, not an error."""
    # Nothing more can be written there, and what is still in the buffer must not fail at the end of the process.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


_SENTENCE: Final = 1_000
"""Longest sentence in a list of commands; they are wrapped, never cut off."""
_EXHAUSTED: Final = (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""What any system call may meet, also while a file of this program itself is read: no mistake in it."""
_REFUSED: Final = {
    **dict.fromkeys(_EXHAUSTED, "free what it is short of (`dmesg` says more)"),
    errno.ENAMETOOLONG: "give a file that can be there",
    errno.EACCES: "give a file that you may open",
}
"""What is no mistake in the program, with what to do: that, and files that were named wrongly."""
_ALIKE: Final = 0.75
"""How like what was typed an option must be to be named, from 0 to 1."""
_WORDS: Final = {
    "is not a valid integer range": "is not a whole number",
    "is not a valid integer": "is not a whole number",
    "is not a valid float range": "is not a number",
}
"""Words of click that say less than they could."""


def _usage(error: click.ClickException) -> int:
    """Say what is wrong with the command line, and where it is explained."""
    from fairlead.wire.fields import shortened

    context = getattr(error, "ctx", None)
    path = context.command_path if context else "fairlead"
    text = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        print(text, file=sys.stderr)
        return USAGE
    text = shortened(text[:1].lower() + text[1:])
    for theirs, ours in _WORDS.items():
        text = text.replace(theirs, ours)
    print(f"{path}: {text}{'' if text.endswith(('.', '?')) else '.'} See `{path} --help`.", file=sys.stderr)
    return error.exit_code


def complain(message: str, details: Sequence[str] = ()) -> None:
    """One sentence on standard error, with further lines indented; what others wrote in it is shown, not obeyed, and
    shortened where it is long.
    """
    from fairlead.cli.render import plain
    from fairlead.wire.fields import shortened

    with contextlib.suppress(OSError):
        sys.stdout.flush()
    for text in (f"fairlead: {message}", *(f"  {line}" for line in details)):
        print("\n".join(plain(line) for line in shortened(text).split("\n")), file=sys.stderr)


# -- how a command ends -------------------------------------------------------------------------------------------


OK: Final = 0
FAILED: Final = 1
"""The thing itself failed or differs: a scenario differs, a journal is damaged, a file cannot be used."""
USAGE: Final = 2
"""The command line is wrong."""
UNREACHABLE: Final = 3
"""No service answers at the address."""
REFUSED: Final = 4
"""The service said no: unknown key, not allowed, invalid request."""
SERVICE_ERROR: Final = 5
"""The service answered, but failed or made no sense."""
TIMED_OUT: Final = 124
"""`submit --wait`: the job was stopped by its time limit (as coreutils' `timeout` says it)."""
INTERRUPTED: Final = 130

STATUSES_TEXT = """\
Exit status:
  0  done                          3  no service answers
  1  it failed, or differs         4  the service refused: not found, not allowed, invalid
  2  the command line is wrong     5  the service failed
"""


class Failure(Exception):
    """A command cannot go on: one sentence, further lines, and an exit status."""

    def __init__(self, message: str, status: int = FAILED, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message, self.status, self.details = message, status, tuple(details)


def wrong_usage(message: str) -> Failure:
    """A `Failure` for something wrong on the command line or in a file of jobs."""
    return Failure(message, USAGE)


def status_of(error: ClientError) -> int:
    """The exit status for what went wrong with a call."""
    if isinstance(error, Misconfigured):
        return USAGE
    if isinstance(error, Unreachable):
        return UNREACHABLE
    return REFUSED if isinstance(error, Refused) else SERVICE_ERROR


def of_files(status: int) -> int:
    """The status of a simulation or of scenarios, where 2 is for files that cannot be used: not for a command line."""
    return FAILED if status == USAGE else status


# -- how jobs are named -----------------------------------------------------------------------------------------------


POD = ("pod/", "pods/", "po/", "job/", "jobs/", "podgroup/")
DEFAULT_NAMESPACE = "default"

namespace_option = click.option(
    "--namespace", "-n", metavar="NS", help="Namespace of a pod, for pod/NAME [that of the context, or default]."
)


def key_of(text: str, namespace: str | None = None, usual: str = "") -> str:
    """The key that the service knows: `NS/NAME` for `pod/NAME` and `pod/NS/NAME`, else the text. Raises `Failure`."""
    kind = next((kind for kind in POD if text.startswith(kind)), "")
    given, _, name = text[len(kind) :].rpartition("/")
    if not name:
        raise wrong_usage(f"{text}: {_NO_KEY}" if text else _NO_KEY)
    if given and namespace and given != namespace:
        raise wrong_usage(f"{text} and --namespace {namespace} name two namespaces; give one of them")
    if not kind and not namespace:
        return text
    return f"{given or namespace or usual or DEFAULT_NAMESPACE}/{name}"


def named(client: Client, text: str, namespace: str | None = None) -> str:
    """The key that is meant on the command line; the usual namespace is that of the context."""
    return key_of(text, namespace, client.address.namespace)
