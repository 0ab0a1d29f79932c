"""Words of other tools: what is said of them is there, and they are none of ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.cli import foreign
from fairlead.cli.filters import ENDED_STATES, LIVE_STATES
from fairlead.cli.main import COMMANDS, app

ROOT: Any = app


def options(name: str) -> set[str]:
    return {text for each in ROOT.get_command(None, name).params for text in each.opts} | {"--help"}


def test_each_command_that_is_named_is_there() -> None:
    """With its options; and none of these words is a command."""
    for theirs, ours in foreign.COMMANDS.items():
        name, *rest = ours.split()
        assert theirs not in COMMANDS
        assert name in COMMANDS
        assert {word for word in rest if word.startswith("-")} <= options(name), ours


def test_each_option_that_is_named_is_there() -> None:
    """Of the same command, or of the one that is named with it; and none of these words is an option of it."""
    known = foreign.OPTIONS | {"submit": foreign._TO_SUBMIT, "run": foreign._TO_SUBMIT}
    for command, words in known.items():
        assert not words.keys() & options(command), command
        for ours in words.values():
            named = re.fullmatch(r"`fairlead (\S+).*`", ours)
            there = options(named[1] if named else command)
            assert set(re.findall(r"(?:^|(?<=\s))--?[a-z][a-z-]*", ours.partition("-- ")[0])) <= there, (command, ours)


def test_each_state_that_is_named_is_one() -> None:
    """And none of these words is."""
    states = {*LIVE_STATES, *ENDED_STATES}
    assert set(foreign.STATES.values()) <= states
    assert not foreign.STATES.keys() & states


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--ntasks", "4"), "it is --cpu 4 here"),
        (("-n4",), "it is --cpu 4 here"),
        (("--depend=afterok:7",), "it is --after-ok 7 here"),
        (("--no-requeue",), "it is --retry 0 here"),
        (("--no-kill",), "leave --no-kill out"),
        (("--nodelist", "a,b"), "of `sbatch` it is not here: a job runs on one node"),
        (("--m", "1"), "no such option '--m'."),
        (("--mystery",), "no such option '--mystery'."),
    ],
)
def test_options_of_sbatch_are_translated(run: Callable[..., Any], typed: tuple[str, ...], said: str) -> None:
    """With the value that was typed; what several could be is not guessed."""
    result = run("submit", *typed, "--", "true")
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("text", "said"), [("30:00", "30m"), ("1-12", "1d 12h"), ("90", ""), ("2h", ""), ("1:2:3:4", "")]
)
def test_times_of_slurm_are_said_in_ours(text: str, said: str) -> None:
    """Only where they look like one."""
    assert foreign.about_time(text).rpartition("write ")[2] == said


@pytest.mark.parametrize(
    "typed", [("whatif", "submit", "--array", "1-5"), ("whatif", "submit", "--hold"), ("nodes", "--group", "x")]
)
def test_no_option_is_named_that_the_command_has_not(run: Callable[..., Any], typed: tuple[str, ...]) -> None:
    """There is no option --array; it is --array 1-5 here: so it was said."""
    failed = run(*typed)
    assert failed.exit_code == 2
    assert "no such option" in failed.stderr
    assert "here" not in failed.stderr


@pytest.mark.parametrize(
    ("theirs", "ours"), [("qsub", "submit"), ("bjobs", "ls"), ("qdel", "cancel"), ("tsp", "submit")]
)
def test_commands_of_other_schedulers_are_known(run: Callable[..., Any], theirs: str, ours: str) -> None:
    """It was asked whether `quota` was meant by `qstat`."""
    result = run(theirs, "1")
    assert (result.exit_code, f"it is `fairlead {ours}` here" in result.stderr) == (2, True)
