"""Scripts for PBS, TORQUE and Grid Engine: what their lines become, and what is said of the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import qsub
from fairlead.cli.submit import submit

Run = Callable[..., Any]
FLAGS = frozenset(flag for param in submit.params for flag in param.opts)


@pytest.fixture
def taking(service: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A service that takes every job; commands run in an empty directory."""
    service.on("POST", "/jobs", lambda request: {"jobs": [service.add("1", name=request.body["jobs"][0]["name"])]})
    monkeypatch.chdir(tmp_path)
    return service


def body(service: Any) -> dict[str, Any]:
    [sent] = service.sent("POST", "/jobs")
    return dict(sent["jobs"][0])


def write(text: str) -> None:
    Path("job.sh").write_text(text)


def becomes(kind: type[qsub.Pbs], *lines: str) -> tuple[str, list[str]]:
    """In our words, and what is said of the rest."""
    options = kind()
    for line in lines:
        options.add(line.split(), "x:1")
    words = [word for _, found in options.translated(FLAGS) for word in found]
    return " ".join(words), [text.removeprefix("x:1: ") for text in options.unknown]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("-N a|-q long -A proj|-l walltime=2:00:00", "--name a --queue long --tag account=proj --time-limit 7200s"),
        ("-l walltime=90", "--time-limit 90s"),
        ("-l nodes=1:ppn=4,mem=8gb,walltime=10:00", "--cpu 4 --memory 8192Mi --time-limit 600s"),
        ("-l nodes=n7:ppn=2:gpus=1", "--node-selector hostname=n7 --cpu 2 --gpu 1"),
        ("-l nodes=1:ppn=4|-l pmem=2gb", "--cpu 4 --memory 8192Mi"),
        ("-l select=1:ncpus=8:mem=16gb:ngpus=2:mpiprocs=8", "--memory 16384Mi --gpu 2 --cpu 8"),
        ("-l select=1 -l place=scatter", "--cpu 1"),
        ("-l ncpus=4 -l mem=1048576kb", "--cpu 4 --memory 1024Mi"),
        ("-l mem=1073741824", "--memory 1024Mi"),
        ("-lwalltime=60 -joe", "--time-limit 60s"),
        ("-t 1-10%2", "--array 1-10%2"),
        ("-J 0-20:5", "--array 0-20:5"),
        ("-m abe -M ann@x.org", "--notify mail:ann@x.org --notify-on start,end,fail"),
        ("-m n -M ann", ""),
        ("-W depend=afterok:12.host.org:13[].host,afterany:4", "--after-ok 12,13 --after-any 4"),
        ("-W block=true -h -V -v A=1", "--wait --hold --export all --export A=1"),
        ("-r n -p 5 -a 1630 -d /tmp -S /bin/bash -k oe", "--retry 0 --priority 5 --begin 16:30 --cwd /tmp"),
        ("-o h.org:out.$PBS_JOBID -e ${PBS_JOBNAME}.%e", "--output out.%j --error %x.%%e"),
        ("-o logs/ -e /", "--output logs/%x.o%j --error /%x.e%j"),
        ("-o o -e e|-j oe", "--output o"),
        ("-o o -e e|-j eo", "--output e"),
        ("-j eo", ""),
        ("-o $HOME/^array_index^.txt", f"--output {Path.home()}/%a.txt"),
    ],
)
def test_lines_of_pbs(lines: str, words: str) -> None:
    assert becomes(qsub.Pbs, *lines.split("|")) == (words, [])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("-N a -cwd -V -j y|-q all.q -P proj", "--name a --export all --queue all.q --tag account=proj"),
        ("-l h_rt=24:00:00,h_vmem=4G -pe smp 4", "--time-limit 86400s --cpu 4 --memory 16384Mi"),
        ("-l h_rt=3600 -l gpu=1", "--time-limit 3600s --gpu 1"),
        ("-l h_rt=:50:", "--time-limit 3000s"),
        ("-l mem_free=6G,h_vmem=7.5G,h_data=512M", "--memory 7680Mi"),
        ("-t 1-100:10 -tc 3", "--array 1-100:10%3"),
        ("-tc 3", ""),
        ("-hold_jid 12,13", "--after-any 12,13"),
        ("-hold_jid_ad 12 -t 1-3", "--after-any 12.%a --array 1-3"),
        ("-p -100 -sync y -r y", "--priority -100 --wait --retry 100 --no-retry-on any"),
        ("-o l/$JOB_NAME.$JOB_ID.$TASK_ID -e ${JOB_ID}_x", "--output l/%x.%j.%a --error %j_x"),
        ("-S /bin/bash -terse -b y -R y -w e -wd /tmp", "--cwd /tmp"),
    ],
)
def test_lines_of_grid_engine(lines: str, words: str) -> None:
    assert becomes(qsub.GridEngine, *lines.split("|")) == (words, [])


@pytest.mark.parametrize(
    ("kind", "line", "words", "said"),
    [
        (qsub.Pbs, "-l nodes=2:ppn=4", "--cpu 4", "-l nodes=2:ppn=4: a job runs on one node"),
        (qsub.Pbs, "-l nodes=1:ppn=4:bigmem", "--cpu 4", "-l nodes=1:ppn=4:bigmem: bigmem: say --node-selector "),
        (qsub.Pbs, "-l select=1:x=y:ncpus=4", "--cpu 4", "-l select=1:x=y:ncpus=4: x: say --node-selector "),
        (qsub.Pbs, "-l select=1:ncpus=4+2:ncpus=1", "", "-l select=1:ncpus=4+2:ncpus=1: a job runs on one node"),
        (qsub.Pbs, "-l mem=much,walltime=1", "--time-limit 1s", "-l mem=much: say --memory SIZE"),
        (qsub.Pbs, "-l walltime=1:0:0:0", "", "-l walltime=1:0:0:0: say --time-limit TIME"),
        (qsub.Pbs, "-l place=excl", "", "-l place=excl: say --cpu and --memory of the whole node"),
        (qsub.Pbs, "-l matlab=1", "", "-l matlab=1: say --resource NAME=N"),
        (qsub.Pbs, "-q a@b", "", "-q a@b: a job is in one queue"),
        (qsub.Pbs, "-I", "", "-I: say: fairlead run --pty -- bash"),
        (qsub.Pbs, "-o $OUT/x", "", "-o $OUT/x: variables in it are not looked up"),
        (qsub.Pbs, "-a 01011200", "", "-a 01011200: say #FAIRLEAD --begin TIME"),
        (qsub.Pbs, "-c s", "", "-c s: leave it out"),
        (qsub.Pbs, "-A", "", "-A: it has no value; leave it out"),
        (qsub.GridEngine, "-pe smp 2-8", "", "-pe smp 2-8: say #FAIRLEAD --cpu N"),
        (qsub.GridEngine, "-notify", "", "-notify: say --signal SIG@TIME, such as USR1@60, with a time limit"),
        (qsub.GridEngine, "-l s_rt=60", "", "-l s_rt=60: say h_rt"),
        (qsub.GridEngine, "-binding linear:1 -cwd", "", "-binding linear:1: leave it out"),
        (qsub.GridEngine, "-J 1-2", "", "-J 1-2: leave it out"),
    ],
)
def test_what_is_not_here_is_named(kind: type[qsub.Pbs], line: str, words: str, said: str) -> None:
    """As it was written, with what to write instead."""
    found, [told] = becomes(kind, line)
    assert (found, told[: len(said)]) == (words, said)


def test_a_script_for_pbs(taking: Any, run: Run) -> None:
    """It ran with one core, for ever, without an index and in the home directory: all of it was a comment."""
    write(
        "#!/bin/sh\n#PBS -N old -t 1-3\n#PBS -l nodes=1:ppn=2,filesystems=home # so\n#FAIRLEAD --cpu 3\n"
        "cd $PBS_O_WORKDIR\n#PBS -l mem=1gb\n./part $PBS_ARRAYID $PBS_JOBFS $TMPDIR\n"
    )
    assert run("submit", "job.sh").stderr.splitlines() == [
        "fairlead: job.sh: directives after the first command mean nothing: line 6",
        "fairlead: job.sh: 1 of its #PBS options means nothing here; --ignore-directives reads none",
        "  job.sh:3: -l filesystems=home: say --node-selector NAME=VALUE (`fairlead nodes`), or leave it out",
        "fairlead: job.sh reads variables of other schedulers, which are not set here:",
        "  PBS_ARRAYID is FAIRLEAD_ARRAY_INDEX",
        "  PBS_JOBFS is nothing here; --env PBS_JOBFS=VALUE sets it",
        "  TMPDIR is what $(mktemp -d) makes",
    ]
    assert (body(taking)["name"], body(taking)["array"], body(taking)["resources"]) == ("old", "1-3", {"cpu": 3})
    assert body(taking)["env"] == {"PBS_O_WORKDIR": str(Path.cwd())}


@pytest.mark.parametrize(
    ("lines", "gets"),
    [
        ("cd ${SLURM_SUBMIT_DIR}", ["SLURM_SUBMIT_DIR"]),
        ("cd $LS_SUBCWD; ls $SGE_O_WORKDIR", ["LS_SUBCWD", "SGE_O_WORKDIR"]),
        ("PBS_O_WORKDIR=/tmp\ncd $PBS_O_WORKDIR", []),
        ("# cd $PBS_O_WORKDIR", []),
        ("#FAIRLEAD --env PBS_O_WORKDIR=/data\ncd $PBS_O_WORKDIR", ["/data"]),
    ],
)
def test_a_script_finds_the_directory_it_was_submitted_in(taking: Any, run: Run, lines: str, gets: list[str]) -> None:
    """Nearly every script for PBS begins with `cd $PBS_O_WORKDIR`, which would go home."""
    write(f"#!/bin/sh\n{lines}\n")
    assert run("submit", "job.sh").stderr == ""
    here = {name: str(Path.cwd()) for name in gets} if gets != ["/data"] else {"PBS_O_WORKDIR": "/data"}
    assert body(taking).get("env", {}) == here


def test_a_script_for_grid_engine(taking: Any, run: Run) -> None:
    """Its lines count wherever they stand; `#$` begins other comments too."""
    write("#!/bin/sh\n#$Id: 1\necho $NSLOTS\n#$ -N a\n#$-pe smp 2\n")
    told = run("submit", "job.sh").stderr.splitlines()
    assert told[1:] == ["  NSLOTS is FAIRLEAD_CPU"]
    assert (body(taking)["name"], body(taking)["resources"]) == ("a", {"cpu": 2})


def test_a_script_for_several_counts_for_slurm(taking: Any, run: Run) -> None:
    """One that is kept for two clusters says the same twice."""
    write("#!/bin/sh\n#PBS -N a -l ncpus=2\n#SBATCH -J b\n#$ -N c\n")
    said = "fairlead: job.sh: its #SBATCH lines count, and those for other schedulers do not\n"
    assert run("submit", "job.sh").stderr == said
    assert (body(taking)["name"], "resources" in body(taking)) == ("b", False)


def test_a_dependency_that_is_not_here_is_refused(taking: Any, run: Run) -> None:
    """The job would begin at once."""
    write("#!/bin/sh\n#PBS -W depend=afterokarray:12[]\n")
    result = run("submit", "job.sh")
    assert (result.exit_code, taking.sent("POST", "/jobs")) == (2, [])
    assert "job.sh:2: -W depend=afterokarray:12[]: say --after, " in result.stderr
    write("#!/bin/sh\n#$ job\n#$ -N x y\n#PBS train.sh\n")
    assert "job.sh:4: 'train.sh' is no option of qsub" in run("submit", "job.sh").stderr
    assert run("submit", "--ignore-directives", "job.sh").exit_code == 0
