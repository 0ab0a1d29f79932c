"""The life of an application: what the table says follows, and what it does not know is an error."""

from __future__ import annotations

from itertools import product

import pytest

from fairlead.core.model.lifecycle import ENDED, LIVE, TRANSITIONS, State, Step, next_state


def follow(*steps: Step, state: State = State.NEW) -> State:
    """The state after these steps."""
    for step in steps:
        state = next_state("app", state, step)
    return state


def test_an_ordinary_life() -> None:
    """Accepted, running, completing, completed, forgotten."""
    assert follow(Step.RUN, Step.RUN, Step.RUN) is State.RUNNING
    assert follow(Step.RUN, Step.RUN, Step.COMPLETE) is State.COMPLETING
    assert follow(Step.RUN, Step.RUN, Step.COMPLETE, Step.COMPLETE, Step.EXPIRE) is State.EXPIRED


def test_what_completes_runs_again_when_something_comes() -> None:
    """Completing is no end."""
    assert follow(Step.RUN, Step.COMPLETE, Step.RUN) is State.RUNNING


def test_what_runs_nothing_more_is_accepted_once_more() -> None:
    """An application whose work is to be tried again stands where it stood before it ran."""
    assert follow(Step.RUN, Step.RUN, Step.REQUEUE) is State.ACCEPTED
    assert follow(Step.RUN, Step.START, Step.REQUEUE) is State.ACCEPTED


def test_a_step_that_a_state_does_not_know_is_an_error_that_names_all_three() -> None:
    """Application, state and step."""
    with pytest.raises(ValueError, match="application a1 is Completed: runApplication is not possible"):
        next_state("a1", State.COMPLETED, Step.RUN)


def test_nothing_comes_back_from_an_end() -> None:
    """All that an ended application can do is expire."""
    for state, step in product(ENDED, Step):
        assert TRANSITIONS.get((state, step), State.EXPIRED) is State.EXPIRED


def test_every_state_is_reached_from_new_and_ends() -> None:
    """No state is cut off, and none is a trap."""

    def reachable(start: State) -> set[State]:
        found, todo = {start}, [start]
        while todo:
            here = todo.pop()
            for after in {to for (state, _), to in TRANSITIONS.items() if state is here} - found:
                found.add(after)
                todo.append(after)
        return found

    assert reachable(State.NEW) == set(State)
    assert all(reachable(state) & ENDED for state in State)


def test_what_counts_as_running() -> None:
    """An accepted application holds no place, nor does one that completes."""
    assert {State.STARTING, State.RUNNING} == LIVE
