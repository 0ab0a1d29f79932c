"""What every test shares: the Hypothesis profiles and how many random steps a property test drives.

`make test` draws afresh each time and keeps failures in `.hypothesis/`; with CI set the same examples are drawn every
time; `--hypothesis-profile long` looks ten times as far. `--steps N` sets the number of steps of the property tests
alone, whatever the profile.
"""

from __future__ import annotations

import gc
import math
import os
import signal

import pytest
from hypothesis import HealthCheck, Phase, settings
from portions import share

STEPS = share(10_000)
STEPS_PER_EXAMPLE = 50

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a shell: what the tests start would inherit it, and Ctrl-C would end none of that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the machine that runs the tests is shared, and slowness is the matter of the benchmarks.
_BASE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("quick", _BASE, max_examples=100)
settings.register_profile("ci", _BASE, max_examples=100, derandomize=True, database=None)
settings.register_profile("long", _BASE, max_examples=1_000)
settings.load_profile("ci" if os.environ.get("CI") else "quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--steps",
        type=_positive,
        metavar="N",
        help=f"random steps each property test drives in all (here {STEPS:,}; profile long: ten times that)",
    )


def pytest_collection_finish() -> None:
    """What is there before the first test lives as long as the last: the search for garbage need not look at it."""
    gc.collect()
    gc.freeze()


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise pytest.UsageError(f"--steps {text}: write a number above 0, such as --steps 100000")
    return int(text)


@pytest.fixture(scope="session")
def steps(pytestconfig: pytest.Config) -> int:
    """How many random steps a property test drives in all."""
    asked: int | None = pytestconfig.getoption("--steps")
    return asked or STEPS * settings.default.max_examples // 100


@pytest.fixture(scope="session")
def fewer_steps(pytestconfig: pytest.Config, steps: int) -> int:
    """The same for tests whose steps cost several times as much: a fifth, unless `--steps` asks for a number."""
    return steps if pytestconfig.getoption("--steps") else steps // 5


@pytest.fixture
def step_settings(steps: int) -> settings:
    """The Hypothesis settings of a state machine that makes about `steps` steps, for `run_state_machine_as_test`."""
    return _stepping(steps)


@pytest.fixture
def fewer_step_settings(fewer_steps: int) -> settings:
    """The same for a machine whose steps cost several times as much."""
    return _stepping(fewer_steps)


def _stepping(steps: int) -> settings:
    per_example = min(steps, STEPS_PER_EXAMPLE)
    return settings(
        settings.default,
        # A few examples end early, by chance; two in a hundred more make up for it.
        max_examples=math.ceil(steps / per_example * 1.02),
        stateful_step_count=per_example,
        # A failure is shrunk and shown; explaining it takes longer than reading it.
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )
