"""Scripts for LSF: what their lines become, and what is said of the others."""

from __future__ import annotations

import shlex

import pytest

from fairlead.cli import bsub
from fairlead.cli.submit import submit

FLAGS = frozenset(flag for param in submit.params for flag in param.opts)


def becomes(*lines: str) -> tuple[str, list[str]]:
    """In our words, and what is said of the rest."""
    options = bsub.Options()
    for line in lines:
        options.add(shlex.split(line), "x:1")
    words = [word for _, found in options.translated(FLAGS) for word in found]
    return " ".join(words), [text.removeprefix("x:1: ") for text in options.unknown]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("-J a[1-9]%3|-q long -P proj", "--name a --array 1-9%3 --queue long --tag account=proj"),
        ("-J [1,4]", "--array 1,4"),
        ("-W 1:30", "--time-limit 5400s"),
        ("-W 90", "--time-limit 5400s"),
        ("-wt 2|-wa USR2", "--signal A:USR2@120"),
        ("-wa 'TERM' -wt 1:05", "--signal A:TERM@3900"),
        ("-n 1|-M 3GB -R 'select[mem>4000] rusage[mem=4GB] span[hosts=1]'", "--cpu 1 --memory 4096Mi"),
        ("-n8", "--cpu 8"),
        ("-gpu num=2:mode=shared:j_exclusive=yes", "--gpu 2"),
        ("-u a@x.org -B -N", "--notify mail:a@x.org --notify-on start,end"),
        ("-o l/%J.%I -e e", "--output l/%A.%a --open-mode append --error e --open-mode append"),
        ("-oo l/ -eo l/ -i in", "--output l/%j.oo --error l/%j.eo --stdin in"),
        ("-w 'done(12) && ended(13[2])&&started(4)'", "--after-ok 12 --after-any 13.2 --after 4"),
        ("-env 'all, A=1' -cwd /tmp", "--export all,A=1 --cwd /tmp"),
        ("-b 8:00 -sp 5 -H -K -rn", "--begin 08:00 --priority 5 --hold --wait --retry 0"),
        ("-L /bin/sh", ""),
    ],
)
def test_lines_of_lsf(lines: str, words: str) -> None:
    assert becomes(*lines.split("|")) == (words, [])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-M 4000", "-M 4000: say #FAIRLEAD --memory SIZE of the whole job"),
        ("-R rusage[mem=4000]", "-R rusage[mem=4000]: say #FAIRLEAD --memory SIZE of the whole job"),
        ("-R rusage[scratch=2]", "-R rusage[scratch=2]: scratch: say --resource NAME=N"),
        ("-R select[gpu]", "-R select[gpu]: say --node-selector NAME=VALUE"),
        ("-R 'hname!=a'", "-R hname!=a: say --node-selector NAME=VALUE"),
        ("-R affinity[core(2)]", "-R affinity[core(2)]: leave it out; #FAIRLEAD --cpu N says"),
        ("-n 4,8", "-n 4,8: write a whole number"),
        ("-nnodes 2", "-nnodes 2: a job runs on one node"),
        ("-x", "-x: say --cpu and --memory of the whole node"),
        ("-Is", "-Is: say: fairlead run --pty"),
        ("-app x", "-app x: leave it out"),
        ("-wa CHKPNT -wt 2", "-wt 2: say --signal SIG@TIME"),
        ("-wt soon", "-wt soon: say #FAIRLEAD --signal SIG@TIME"),
        ("-W 1:2:3", "-W 1:2:3: say #FAIRLEAD --time-limit TIME"),
        ("-env ~A", "-env ~A: say #FAIRLEAD --export"),
        ("-b 1:08:00", "-b 1:08:00: say #FAIRLEAD --begin TIME"),
        ("-w done(prep)", "-w done(prep): say --after, --after-ok"),
    ],
)
def test_what_is_not_here_is_named(line: str, said: str) -> None:
    """As it was written, with what to write instead."""
    found, [told] = becomes(line)
    assert (found, told[: len(said)]) == ("", said)


def test_memory_of_several_cores_is_named() -> None:
    """Some clusters count it for each of them, some for all."""
    assert becomes("-n 4 -M 4GB -gpu num=1:gmodel=A100") == (
        "--cpu 4 --gpu 1",
        [
            "-gpu num=1:gmodel=A100: devices are chosen by number alone, so gmodel is passed over",
            "-M 4GB: say #FAIRLEAD --memory SIZE of the whole job: its unit, and whether it is for each core, differ",
        ],
    )


def test_a_dependency_that_is_not_here_is_kept_in_mind() -> None:
    """A script with it is refused: the job would begin at once."""
    options = bsub.Options()
    options.add(["-w", "done(12) || done(13)"], "x:1")
    assert list(options.translated(FLAGS)) == []
    assert options.unlike_dependency.startswith("x:1: -w done(12) || done(13): say --after")
