"""The `fairlead` command: every command by name, with the sentence that the list of commands shows.

Decides which module a command is in and the order in which commands are listed. Never works itself. Invariant: only the
module of the command that runs is imported, so that `fairlead ls` starts at once.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_group

from fairlead.cli import app as frame

COMMANDS = {
    "demo": ("demo", "Show it at work, with real processes."),
    "up": ("up", "Start the service on this machine."),
    "submit": ("submit", "Submit a command as a job, and print its key."),
    "ls": ("jobs", "List jobs: what runs, what waits and why."),
    "show": ("jobs", "Show everything about one job."),
    "why": ("questions", "Say why a job waits."),
    "when": ("questions", "Say when a job that waits is expected to start."),
    "whatif": ("questions", "Say what would be otherwise, without doing it."),
    "logs": ("follow", "Print what a job wrote."),
    "wait": ("follow", "Wait until jobs have ended."),
    "cancel": ("jobs", "Cancel jobs."),
    "priority": ("jobs", "Change the priority of a job."),
    "move": ("jobs", "Put a job into another queue."),
    "reserve": ("batch", "Keep the next room for a job that waits."),
    "checkpoint": ("batch", "Say that a running job has saved what it did."),
    "top": ("top", "Watch live who runs, who waits and why."),
    "queues": ("cluster", "Show the queues: who runs and waits, use, limits."),
    "nodes": ("cluster", "Show the nodes: what they have, what is taken."),
    "drain": ("cluster", "Take no new work on a node; what runs there goes on."),
    "label": ("labels", "Give a node attributes and taints."),
    "undrain": ("cluster", "Let a drained node take work again."),
    "usage": ("usage", "Show who uses what, beside what each may use."),
    "limits": ("usage", "Show the limits of users and groups."),
    "priority-class": ("declarations", "List and change priority classes."),
    "quota": ("declarations", "List and change quotas by priority class."),
    "budget": ("declarations", "List and change disruption budgets."),
    "config": ("configuration", "Check, show and change the queue configuration."),
    "kubernetes": ("kubernetes", "Schedule a Kubernetes cluster: pods with `schedulerName: fairlead`."),
    "token": ("tokens", "Make, list and revoke tokens for access over TCP."),
    "journal": ("journals", "Check, replay and read the journal of a service."),
    "scenario": ("simulations", "Run or check scenarios in virtual time."),
    "sim": ("simulator", "Try queue files on workloads, in virtual time."),
    "bench": (
        "simulations",
        "Measure the scheduler: allocations per second, how long answers to questions take, what the journal costs.",
    ),
    "doctor": ("doctor", "Say what this machine can enforce, and more."),
}


class _Commands(MutableMapping[str, Any]):
    """The commands by name; a command's module is imported when the command is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            module, _ = COMMANDS[name]
            part = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
            part.callback()(_nothing)
            import_module(f"fairlead.cli.{module}").register(part)
            self._made.update(get_group(part).commands)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _nothing() -> None:
    """Do nothing: makes a group of what has one command only."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from fairlead.version import version_and_build

        print(f"fairlead {version_and_build()}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options before the command."""
    del version


class RootGroup(frame.PlainGroup):
    """`fairlead` itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()

    def list_commands(self, _ctx: Any) -> list[str]:
        """The names, without importing anything."""
        return list(COMMANDS)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write the list of commands, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in COMMANDS.items()])


app = frame.group(sentence="Decide who runs where and when, by priority and fairness, and say why.", cls=RootGroup)
app.callback()(_root)


def run() -> None:
    """Entry point of the command."""
    app(prog_name="fairlead")


if __name__ == "__main__":
    run()
