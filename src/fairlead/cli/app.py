"""The frame of the command line: help that reads the same everywhere, errors in one sentence, the way to the service.

Decides how commands are declared, how they end, and which options all clients share. Never talks to the service itself.
Invariant: whatever goes wrong is one sentence on standard error and an exit status of `failures`; a traceback means a
mistake in this program.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, NoReturn, TypeVar

import click

from fairlead.cli import completion
from fairlead.cli.failures import INTERRUPTED, USAGE, Failure, status_of
from fairlead.client.address import find_address
from fairlead.client.errors import ClientError
from fairlead.client.sync import Client

_F = TypeVar("_F", bound=Callable[..., Any])
Status = int | None
"""What a command returns: an exit status, or None for 0."""


def _output(*formats: str) -> Callable[[_F], _F]:
    def declare(function: _F) -> _F:
        shown = ", ".join(formats)
        chosen = click.option(
            "--output", "-o", type=click.Choice(formats), default=formats[0], metavar="FORMAT", help=f"One of {shown}."
        )
        return chosen(click.option("--json", "output", flag_value="json", help="The same as -o json.")(function))

    return declare


list_output = _output("table", "wide", "json", "yaml", "name")
"""The format of a list, as `output`: `wide` cuts nothing, `name` prints the name of each alone."""
show_output = _output("text", "json", "yaml")
"""The format of anything else."""
report_output = _output("text", "json")
"""The format of what is made up of lines, each of which may be JSON."""
key_argument = click.argument("key", metavar="KEY", help="Key of the job.", shell_complete=completion.keys)
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
        sys.exit(status or 0)


command = partial(click.command, cls=Command)
"""Declare a command. Its docstring is its help; `examples` stand below it as they are written."""


def connected(function: Callable[..., Status]) -> Callable[..., Status]:
    """Give a command a `Client` as its first argument, and the options --socket, --url and --context."""

    @_socket_option
    @_url_option
    @_context_option
    @wraps(function)
    def run(*args: Any, socket: str | None, url: str | None, context: str | None, **given: Any) -> Status:
        return function(Client(find_address(socket, url, context)), *args, **given)

    return run


def _reader_gone() -> int:
    """Status of a command whose reader has gone (`| head`): that is its choice, not an error."""
    # Nothing more can be written there, and what is still in the buffer must not fail at the end of the process.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def _usage(error: click.ClickException) -> int:
    """Say what is wrong with the command line, and where it is explained."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "fairlead"
    text = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        print(text, file=sys.stderr)
        return USAGE
    text = text[:1].lower() + text[1:]
    print(f"{path}: {text}{'' if text.endswith(('.', '?')) else '.'} See `{path} --help`.", file=sys.stderr)
    return error.exit_code


def complain(message: str, details: Sequence[str] = ()) -> None:
    """One sentence on standard error, with further lines indented."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    print(f"fairlead: {message}", file=sys.stderr)
    for line in details:
        print(f"  {line}", file=sys.stderr)
