"""The `fairlead` command: every command by name, with the sentence that the list of commands shows.

Decides which module a command is in and the order in which commands are listed. Never works itself. Invariant: only the
module of the command that runs is imported, so that `fairlead ls` starts at once.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module

import click

from fairlead.cli.app import STATUSES_TEXT, Group

SECTIONS = {
    "To begin": {
        "demo": ("demo", "Show it at work, with real processes."),
        "up": ("up", "Start the service on this machine."),
        "submit": ("submit", "Submit a command or a script as a job, and print its key."),
        "run": ("run", "Run a command as a job, and wait for it."),
        "web": ("web", "Open the pages in a browser."),
        "top": ("top", "Watch live who runs, who waits and why."),
    },
    "Jobs": {
        "ls": ("jobs", "List jobs: what runs, what waits and why."),
        "show": ("jobs", "Show everything about jobs."),
        "logs": ("follow", "Print what jobs wrote."),
        "wait": ("follow", "Wait until jobs have ended."),
        "attach": ("terminal", "Sit at the terminal of a job."),
        "cancel": ("changes", "Cancel jobs."),
        "hold": ("changes", "Keep jobs that wait from starting."),
        "release": ("changes", "Let jobs that are on hold start."),
        "suspend": ("changes", "Let jobs that run stand still."),
        "resume": ("changes", "Let jobs that are suspended go on."),
        "signal": ("changes", "Send a signal to jobs that run."),
        "requeue": ("changes", "Stop jobs that run, and let them wait again."),
        "rerun": ("changes", "Submit jobs that have ended once more."),
        "update": ("changes", "Change jobs."),
        "priority": ("jobs", "Change the priority of a job."),
        "move": ("jobs", "Put a job into another queue."),
        "checkpoint": ("jobs", "Say that a running job has saved what it did."),
        "clean": ("clean", "Remove jobs that ended long ago, with what they wrote."),
    },
    "Questions": {
        "why": ("questions", "Say why a job waits, and what to do."),
        "when": ("questions", "Say when a job that waits is expected to start."),
        "whatif": ("whatif", "Say what would be otherwise, without doing it."),
        "queues": ("cluster", "Show the queues: who runs and waits, use, limits."),
        "nodes": ("cluster", "Show the nodes: what they have, what is taken."),
        "gpus": ("occupancy", "Show the GPUs: what each is, and who has it until when."),
        "usage": ("cluster", "Show who uses what, beside what each may use."),
        "limits": ("cluster", "Show the limits of users and groups."),
    },
    "Administration": {
        "config": ("configuration", "Check, show and change the queue configuration."),
        "reserve": ("jobs", "Keep the next room for a job that waits."),
        "drain": ("cluster", "Take no new work on a node; what runs there goes on."),
        "undrain": ("cluster", "Let a drained node take work again."),
        "label": ("cluster", "Give a node attributes and taints."),
        "maintenance": ("maintenance", "Keep the machine free for a time, or for the jobs of some."),
        "priority-class": ("declarations", "List and change priority classes."),
        "quota": ("declarations", "List and change quotas by priority class."),
        "budget": ("declarations", "List and change disruption budgets."),
        "token": ("contexts", "Make, list and revoke tokens for access over TCP."),
        "service": ("service", "Have systemd run the service: at every start of the machine, and again when it fails."),
        "backup": ("backups", "Copy the state of a service into one file."),
        "restore": ("backups", "Make a state directory of a backup."),
        "journal": ("journals", "Check, replay and read the journal of a service."),
        "unknown": ("unknown", "List runs that go on and are not in the journal, or end them."),
        "doctor": ("doctor", "Say what this machine can enforce, and more."),
    },
    "Other places": {
        "kubernetes": ("kubernetes", "Schedule a Kubernetes cluster: pods with `schedulerName: fairlead`."),
        "sim": ("simulator", "Try queue files on workloads, in virtual time."),
        "scenario": ("simulator", "Run or check scenarios in virtual time."),
        "bench": ("simulator", "Measure how many allocations a second the scheduler makes here."),
        "context": ("contexts", "Name the services that you use, and choose one."),
        "completion": ("shells", "Print the script that makes a shell complete `fairlead`."),
    },
}
"""Title, then for each command its module and its sentence."""
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}


class Root(Group):
    """`fairlead` itself."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The names, without importing anything."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """The command of this name; its module is imported now."""
        if name not in COMMANDS:
            return None
        found: click.Command = getattr(import_module(f"fairlead.cli.{COMMANDS[name][0]}"), name.replace("-", "_"))
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant, or what is like it."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from fairlead.cli import foreign

            if said := foreign.about_command(args[0]):
                raise click.UsageError(said, ctx)
            raise click.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing anything."""
        wide = max(map(len, COMMANDS))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(wide), sentence) for name, (_, sentence) in section.items()])

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the exit statuses mean."""
        formatter.write_paragraph()
        formatter.write(STATUSES_TEXT)


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from fairlead.version import version_and_build

        print(f"fairlead {version_and_build()}")
        ctx.exit()


@click.group("fairlead", cls=Root, help="Decide who runs where and when, by priority and fairness, and say why.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and leave.",
)
def app() -> None:
    """Take the options before the command."""


def _replace_closed_streams() -> None:
    """What was closed before (`>&-`) is /dev/null: else the next file would have its number, and be printed into."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            file = os.open(os.devnull, os.O_RDWR)
            if file != number:
                os.dup2(file, number)
                os.close(file)
            setattr(sys, name, os.fdopen(number, mode, closefd=False, encoding="utf-8"))


def run() -> None:
    """Entry point of the command."""
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # As standard error has it: names may have letters that a locale has not.
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="fairlead")


if __name__ == "__main__":
    run()
