"""The frame of the command line: help that reads the same everywhere, errors in one sentence, the way to the service.

Decides how commands are declared, how they end, and which options all clients share. Never talks to the service itself.
Invariant: whatever goes wrong is one sentence on standard error and an exit status of `failures`; a traceback means a
mistake in this program.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Concatenate, NoReturn, ParamSpec, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from fairlead.cli import completion
from fairlead.cli.address import find_address
from fairlead.cli.client import Client
from fairlead.cli.failures import INTERRUPTED, STATUSES_TEXT, USAGE, Failure

P = ParamSpec("P")
Status = int | None
"""What a command returns: an exit status, or None for 0."""

SocketOption = Annotated[
    str | None,
    typer.Option(
        "--socket", metavar="PATH", help="Unix socket of the service (else FAIRLEAD_SOCKET, else the usual place)."
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="Address of the service over TCP (else FAIRLEAD_URL); needs FAIRLEAD_TOKEN."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="Key of the job.", autocompletion=completion.keys)]
QueueOption = Annotated[
    str | None,
    typer.Option(
        "--queue", "-q", metavar="QUEUE", help="Only this queue and those below it.", autocompletion=completion.queues
    ),
]


class _Plain:
    """Help without boxes: examples stay as they are written."""

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        """Write the epilog line by line."""
        epilog = cast(Any, self).epilog
        if epilog:
            formatter.write_paragraph()
            formatter.write(epilog.strip("\n") + "\n")


class PlainCommand(_Plain, TyperCommand):
    """One command."""


class PlainGroup(_Plain, TyperGroup):
    """A group of commands; the outermost one turns everything that goes wrong into a sentence and a status."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. That the reader of its output has gone does not come to Typer, which makes it a failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return _reader_gone()

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run the command line and leave with its exit status."""
        extra.pop("standalone_mode", None)
        try:
            status = super().main(args=args, prog_name=prog_name, standalone_mode=False, **extra)
            sys.stdout.flush()
        except Failure as failure:
            status = failure.status
            complain(failure.message, failure.details)
        except TyperException as error:
            status = _usage(error)
        except (KeyboardInterrupt, Abort):
            status = INTERRUPTED
        except BrokenPipeError:
            status = _reader_gone()
        sys.exit(status or 0)


def _reader_gone() -> int:
    """Status of a command whose reader has gone (`| head`): that is its choice, not an error."""
    # Nothing more can be written there, and what is still in the buffer must not fail at the end of the process.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def complain(message: str, details: Sequence[str] = ()) -> None:
    """One sentence on standard error, with further lines indented."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    print(f"fairlead: {message}", file=sys.stderr)
    for line in details:
        print(f"  {line}", file=sys.stderr)


def _usage(error: TyperException) -> int:
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context else "fairlead"
    text = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        print(text, file=sys.stderr)
        return USAGE
    text = _plainly(text[:1].lower() + text[1:])
    print(f"{path}: {text}{'' if text.endswith(('.', '?')) else '.'} See `{path} --help`.", file=sys.stderr)
    return error.exit_code


_WORDS = (
    (r"Input should be a valid integer(, .*)?$", "must be a whole number"),
    (r"Input should be a valid number(, .*)?$", "must be a number"),
    (r"Input should be greater than or equal to (\S+)$", r"must be \1 or more"),
    (r"Input should be less than or equal to (\S+)$", r"must be \1 or less"),
)


def _plainly(text: str) -> str:
    """What is wrong with a value, in the words that the rest of the program uses."""
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


def group(name: str | None = None, sentence: str = "", cls: type[PlainGroup] = PlainGroup) -> typer.Typer:
    """A new group of commands; `sentence` is its help. Without a name it is the outermost one."""
    return typer.Typer(
        name=name,
        help=sentence,
        cls=cls,
        rich_markup_mode=None,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=name is None,
        context_settings=_settings(),
        epilog=None if name else STATUSES_TEXT,
    )


def command(
    app: typer.Typer, name: str, *, examples: str = "", hidden: bool = False, **settings: Any
) -> Callable[[Callable[P, Status]], Callable[P, Status]]:
    """Declare a command. Its docstring is its help, `examples` are shown below it as they are."""
    epilog = "Examples:\n" + textwrap.indent(inspect.cleandoc(examples), "  ") if examples else None
    return app.command(name, cls=PlainCommand, epilog=epilog, hidden=hidden, context_settings=_settings() | settings)


def _settings() -> dict[str, Any]:
    return {"help_option_names": ["-h", "--help"], "max_content_width": 110}


def client_command(
    app: typer.Typer, name: str, *, examples: str = "", **settings: Any
) -> Callable[[Callable[Concatenate[Client, P], Status]], Callable[Concatenate[Client, P], Status]]:
    """Declare a command whose first parameter is a `Client`: the options --socket and --url are added to it."""

    def declare(function: Callable[Concatenate[Client, P], Status]) -> Callable[Concatenate[Client, P], Status]:
        def run(socket: str | None = None, url: str | None = None, **given: Any) -> Status:
            return cast(Callable[..., Status], function)(Client(find_address(socket, url)), **given)

        own = inspect.signature(function, eval_str=True)
        shared = [
            inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=a)
            for n, a in (("socket", SocketOption), ("url", UrlOption))
        ]
        mine = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in list(own.parameters.values())[1:]]
        run.__signature__ = own.replace(parameters=[*mine, *shared])  # type: ignore[attr-defined]
        run.__annotations__ = {}
        run.__name__, run.__doc__, run.__module__ = function.__name__, function.__doc__, function.__module__
        command(app, name, examples=examples, **settings)(run)
        return function

    return declare
