"""Scripts with directives: which words are scripts, what their heads say, and what the command line says over them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import sbatch
from fairlead.wire.streams import MOST_SCRIPT


@pytest.fixture
def taking(service: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A service that takes every job; commands run in an empty directory."""

    def take(request: Any) -> Any:
        return {"jobs": [service.add("1", name=w["name"]) for w in request.body["jobs"]]}

    service.on("POST", "/jobs", take)
    monkeypatch.chdir(tmp_path)
    return service


Run = Callable[..., Any]


def body(service: Any) -> dict[str, Any]:
    [sent] = service.sent("POST", "/jobs")
    [job] = sent["jobs"]
    return dict(job)


def write(text: str, name: str = "job.sh") -> str:
    Path(name).write_text(text)
    return text


def test_the_head_says_what_it_needs(taking: Any, run: Run, tmp_path: Path) -> None:
    """The text goes along; arguments follow its name; what is typed counts more, and pairs are joined."""
    text = write(
        "#!/bin/sh\n\n# what it is\n#FAIRLEAD --cpu 2 --tag a=1 --tag b=1   # two\n"
        "#FAIRLEAD -m 1Gi --env-file e\n#FAIRLEADER\necho\n"
    )
    write("# settings\nX=1 2\n\nY=\n", "e")
    result = run("submit", "--cpu", "4", "--tag", "b=2", "job.sh", "x", "--cpu", "9")
    told = "fairlead: --cpu stands behind the command, so it goes to that; options of submit come before it\n"
    assert (result.stderr, result.exit_code) == (told, 0)
    assert body(taking) == {
        "command": ["job.sh", "x", "--cpu", "9"],
        "script": text,
        "name": "job.sh",
        "cwd": str(tmp_path),
        "resources": {"cpu": 4, "memory": 2**30},
        "tags": {"a": "1", "b": "2"},
        "env": {"X": "1 2", "Y": ""},
    }


@pytest.mark.parametrize(
    ("line", "env"),
    [
        ("--env PASS=ab#cd --cpu 2", {"PASS": "ab#cd"}),
        ("--cpu 2 --env 'PASS=a #b' # it's two", {"PASS": "a #b"}),
        ('--env "PASS=a\\" #b" --cpu 2 #--cpu 3', {"PASS": 'a" #b'}),
        ("--env PASS=a\\ #b --cpu 2", {"PASS": "a #b"}),
        ("--env PASS='a'#b --cpu 2\t# c", {"PASS": "a#b"}),
    ],
)
def test_a_comment_begins_where_a_word_does(taking: Any, run: Run, line: str, env: dict[str, str]) -> None:
    """As in a shell: `#` within a word, within quotes or behind a backslash is a letter like others."""
    write(f"#!/bin/sh\n#FAIRLEAD {line}\necho\n")
    result = run("submit", "job.sh")
    assert (result.stderr, result.exit_code) == ("", 0)
    assert (body(taking)["env"], body(taking)["resources"]) == (env, {"cpu": 2})


def test_a_queue_of_the_environment_counts_less(taking: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what is usual; the script says what this one needs."""
    monkeypatch.setenv("FAIRLEAD_QUEUE", "root.usual")
    write("#!/bin/sh\n#FAIRLEAD -q root.special\n")
    assert run("submit", "job.sh").exit_code == 0
    assert body(taking)["queue"] == "root.special"


def test_slurms_lines_come_first(taking: Any, run: Run) -> None:
    """Ours say more closely what is meant here."""
    write("#!/bin/sh\n#SBATCH -c 8 -J old\n#FAIRLEAD --cpu 2\n#SBATCH --mem=100\n")
    result = run("submit", "job.sh")
    assert (result.stderr, result.exit_code) == ("", 0)
    assert (body(taking)["resources"], body(taking)["name"]) == ({"cpu": 2, "memory": 100 * 2**20}, "old")


def test_lines_after_the_first_command_are_named(taking: Any, run: Run) -> None:
    """They mean nothing, as in Slurm."""
    write("#!/bin/sh\necho 1\n#SBATCH -c 2\n#FAIRLEAD --cpu 3\n")
    assert run("submit", "job.sh").stderr == (
        "fairlead: job.sh: directives after the first command mean nothing: line 3, 4\n"
    )
    assert "resources" not in body(taking)


def test_a_directive_needs_no_blank_behind_its_word(taking: Any, run: Run) -> None:
    """It needs none for Slurm; the line was passed over."""
    write("#!/bin/sh\n#SBATCH--cpus-per-task=2\n#SBATCH-J a\n#SBATCHER -c 4\n")
    assert run("submit", "job.sh").stderr.splitlines() == [
        "fairlead: job.sh: lines that look like directives and are none",
        "  line 4: #SBATCHER: did you mean #SBATCH?",
    ]
    assert (body(taking)["resources"], body(taking)["name"]) == ({"cpu": 2}, "a")


def test_a_misspelt_directive_is_named(taking: Any, run: Run) -> None:
    """It is a comment, and the job ran with one core. What is commented out on purpose is left alone."""
    write(
        "#!/bin/sh\n#SBACTH -c 4\n##SBATCH -c 5\n# SBATCH -c 6\n#sbatch -c 7\n#BUSB -n 8\n#BATCH\necho\n#SBTACH -c 2\n"
    )
    assert run("submit", "job.sh").stderr.splitlines() == [
        "fairlead: job.sh: lines that look like directives and are none",
        "  line 2: #SBACTH: did you mean #SBATCH?",
        "  line 5: #sbatch: did you mean #SBATCH?",
        "  line 6: #BUSB: did you mean #BSUB?",
    ]


def test_what_slurm_alone_knows_is_named(taking: Any, run: Run) -> None:
    """In one warning, with what to do."""
    write("#!/bin/sh\n#SBATCH -N 2 --constraint=ssd -c 2\n#SBATCH --made-up x\n")
    lines = run("submit", "job.sh").stderr.splitlines()
    assert lines[0].startswith("fairlead: job.sh: 3 of its #SBATCH options mean nothing here")
    assert lines[1:] == [
        "  job.sh:2: --nodes=2: a job runs on one node, so what each of several would have counts once (one task): ask "
        "for all of it",
        "  job.sh:2: --constraint=ssd: say --node-selector NAME=VALUE, of what `fairlead nodes` shows",
        "  job.sh:3: --made-up=x: leave it out",
    ]
    assert body(taking)["resources"] == {"cpu": 2}


def test_directives_may_be_ignored(taking: Any, run: Run) -> None:
    """All of them, without a word."""
    text = write("#!/bin/sh\n#SBATCH --nonsense\n#FAIRLEAD --nonsense\n")
    result = run("submit", "--ignore-directives", "job.sh")
    assert (result.stderr, body(taking)["script"]) == ("", text)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("#FAIRLEAD --cpus 4", "job.sh:2: No such option"),
        ("#FAIRLEAD --cpu", "job.sh:2: Option '--cpu' requires an argument"),
        ("#FAIRLEAD 4", "job.sh:2: only options can stand here, not '4'"),
        ("#FAIRLEAD --file x", "job.sh:2: --file is about the call, not about the job; type it there"),
        ("#FAIRLEAD --ca x", "job.sh:2: --ca is about the call, not about the job; type it there"),
        ("#FAIRLEAD --format json", "job.sh:2: --format is about the call, not about the job; type it there"),
        ("#FAIRLEAD --env X", "job.sh:2: --env: 'X' is not set here; write X=VALUE"),
        ("#FAIRLEAD --env-file e", "job.sh:2: e: cannot be read"),
        ("#FAIRLEAD --tag x", "job.sh:2: --tag: 'x' is not NAME=VALUE"),
        ("#FAIRLEAD --time-limit soon", "job.sh:2: --time-limit: 'soon' is not"),
        ("#FAIRLEAD --cpu many", "job.sh:2: --cpu: 'many'"),
        ("#SBATCH --array=x", "job.sh:2: --array: 'x' names no indices"),
        ("#SBATCH --export=X", "job.sh:2: --export: X is not set here"),
        ("#FAIRLEAD --name 'x", "job.sh:2: No closing quotation"),
        ("#SBATCH train.sh", "job.sh:2: 'train.sh' is no option of sbatch"),
        ("#SBATCH hetjob", "job.sh:2: hetjob: a job has one part here"),
        ("#FAIRLEAD --output %q", "job.sh:2: --output: there is no %q in '%q'; there are %j (key)"),
    ],
)
def test_a_line_that_makes_no_sense(taking: Any, run: Run, line: str, said: str) -> None:
    """It is told with its place, and nothing is submitted."""
    write(f"#!/bin/sh\n{line}\n")
    result = run("submit", "job.sh")
    assert (result.exit_code, said in result.stderr, taking.sent("POST", "/jobs")) == (2, True, []), result.stderr


def test_what_is_typed_is_not_said_to_stand_in_the_script(taking: Any, run: Run) -> None:
    """It counts more; so it is what is wrong."""
    write("#!/bin/sh\n#FAIRLEAD --memory 1Gi\n")
    assert run("submit", "--memory", "much", "job.sh").stderr.startswith("fairlead: --memory: 'much'")
    assert taking.sent("POST", "/jobs") == []


@pytest.mark.parametrize("line", ["--pty", "--detach-keys ctrl-a", "--ca x"])
def test_what_is_about_the_call_of_run_stands_in_no_script(taking: Any, run: Run, line: str) -> None:
    """It meant nothing there, and nothing said so."""
    write(f"#!/bin/sh\n#FAIRLEAD {line}\n")
    result = run("run", "job.sh")
    assert (result.exit_code, taking.sent("POST", "/jobs")) == (2, [])
    assert f"job.sh:2: {line.split()[0]} is about the call, not about the job; type it there" in result.stderr


def test_what_follows_dashes_is_a_command(taking: Any, run: Run) -> None:
    """Which runs as it is then; if it looks like a script with directives, that is said."""
    write("#!/bin/sh\n#SBATCH -c 2\n")
    result = run("submit", "--", "./job.sh")
    assert "count only where no -- stands before it" in result.stderr
    assert "script" not in body(taking)


@pytest.mark.parametrize("text", ["echo no interpreter\n", "\x7fELF"])
def test_what_is_no_script_is_a_command(taking: Any, run: Run, text: str) -> None:
    """It has to say its interpreter; the kernel may know another way to execute it."""
    write(text)
    Path("job.sh").chmod(0o755)
    assert run("submit", "./job.sh").exit_code == 0
    assert "script" not in body(taking)


@pytest.mark.parametrize("path", ["./job.sh", "job.sh"])
def test_what_could_only_fail_is_refused(taking: Any, run: Run, path: str) -> None:
    """A file that is not there, or that nothing can execute; behind `--` it is looked for when the job begins."""
    missing = run("submit", path, "3")
    assert (missing.exit_code, f"there is no file '{path}'" in missing.stderr) == (2, True)
    write("echo no interpreter\n")
    dull = run("run", path)
    assert (dull.exit_code, f"{path} is not marked executable" in dull.stderr) == (2, True)
    assert not taking.requests
    assert run("submit", "--", path).exit_code == 0
    Path("sub").mkdir()
    write("true\n", "sub/other.sh")
    assert run("submit", "--cwd", "sub", "./other.sh").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time-limit", "2", "hours", "--", "true"), "there is no file 'hours', and no command of that name"),
        (("/",), "/ is a directory; give a command, or a script"),
        (("--cwd", "/", "tmp"), "tmp is a directory; give a command, or a script"),
        (("--cpu", "1", "--"), "give either a command (after --), a script, or --file FILE"),
    ],
)
def test_what_is_no_command_is_refused(taking: Any, run: Run, words: tuple[str, ...], said: str) -> None:
    """Each was a job that failed as soon as it began; where nothing stood behind `--` its command was `-`."""
    refused = run("submit", *words)
    assert (refused.exit_code, said in refused.stderr) == (2, True)
    assert not taking.requests
    assert run("submit", "sh", "-c", "--", "true").exit_code == 0


def test_a_program_of_the_path_is_no_script(taking: Any, run: Run) -> None:
    """Unless it is named with its directory."""
    write("#!/bin/sh\n", "true")
    assert run("submit", "true").exit_code == 0
    assert "script" not in body(taking)


@pytest.mark.parametrize("words", [("-", "0.01"), ()])
def test_a_script_may_be_piped_in(taking: Any, run: Run, words: tuple[str, ...]) -> None:
    """As with `sbatch <<END`: its lines count, and `-` lets arguments follow."""
    text = "#!/bin/sh\n#SBATCH -c 2\necho $1\n"
    result = run("submit", "--tag", "a=1", *words, stdin=text)
    assert (result.stderr, result.exit_code) == ("", 0)
    sent = body(taking)
    assert (sent["script"], sent["command"]) == (text, ["script", *words[1:]])
    assert (sent["name"], sent["resources"], sent["tags"]) == ("script", {"cpu": 2}, {"a": "1"})


@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        (("submit", "-"), "echo hi\n", "standard input holds no script: its first line does not begin with #!"),
        (("submit",), "", "standard input is empty; give a command (after --), a script, or --file FILE"),
        (("submit", "-"), "#!/bin/sh\n#FAIRLEAD --cpus 4\n", "standard input:2: No such option"),
        (("submit", "-"), "#!/bin/sh\n" + "#" * MOST_SCRIPT, "larger than 256 KiB, too large to be kept"),
        (("submit", "-"), "#!/bin/sh\r\n", "the lines of standard input end as in Windows"),
        (("submit", "--file", "x", "-"), "#!/bin/sh\n", "give either a command (after --), a script, or --file FILE"),
        (("run", "-"), "#!/bin/sh\n", "run: what is piped in is for the job to read; write: fairlead submit --wait -"),
    ],
)
def test_what_is_piped_in_and_no_script(taking: Any, run: Run, words: tuple[str, ...], text: str, said: str) -> None:
    """It is refused, and why."""
    result = run(*words, stdin=text)
    assert (result.exit_code, said in result.stderr, taking.sent("POST", "/jobs")) == (2, True, []), result.stderr


def test_a_script_has_a_bound(taking: Any, run: Run) -> None:
    """It is kept in the books."""
    write("#!/bin/sh\n" + "#" * MOST_SCRIPT)
    result = run("submit", "./job.sh")
    assert (result.exit_code, "larger than 256 KiB" in result.stderr) == (2, True)


TARGETS = """
--cpu --memory --time-limit --name --output --error --stdin --open-mode --queue --array --after --after-ok --after-any
--after-not-ok --on-never --begin --hold --retry --no-retry-on --gpu --resource --priority --cwd --export --tag
--priority-class --wait --notify --notify-on --singleton
"""
FLAGS = frozenset(TARGETS.split())


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("-c 4", "--cpu 4"),
        ("-n 4 --cpus-per-task=2", "--cpu 8"),
        ("--tasks-per-node=4", "--cpu 4"),
        ("--tasks 3 -c 2", "--cpu 6"),
        ("--mem=8G", "--memory 8192Mi"),
        ("--mem=500", "--memory 500Mi"),
        ("--mem=2048K", "--memory 2Mi"),
        ("--mem-per-cpu=1G -c 4", "--memory 4096Mi --cpu 4"),
        ("-t 90", "--time-limit 5400s"),
        ("-t 10:30", "--time-limit 630s"),
        ("--time=2:00:00", "--time-limit 7200s"),
        ("--time=1-12", "--time-limit 129600s"),
        ("--time=1-0:30:01", "--time-limit 88201s"),
        ("--time=UNLIMITED", ""),
        ("-o slurm.%N.%j.out -e %J_%t%%t.%s", "--output slurm.%N.%j.out --error %j_0%%t.batch"),
        ("-J x -o out -e err -i in -D /tmp", "--name x --output out --error err --stdin in --cwd /tmp"),
        ("-p gpu --qos=high", "--queue gpu --priority-class high"),
        ("-a 1-9%2", "--array 1-9%2"),
        ("-d afterok:1:2,afterany:3", "--after-ok 1,2 --after-any 3"),
        ("-d singleton,afterok:1", "--after-ok 1 --singleton"),
        ("-d afterok:12_7:3,after:9_10:9_11", "--after-ok 12.7,3 --after 9.10,9.11"),
        ("--kill-on-invalid-dep=yes", "--on-never cancel"),
        ("--begin=now+2hours", "--begin now+7200s"),
        ("--begin=16:00", "--begin 16:00"),
        ("-H --requeue", "--hold --retry 100 --no-retry-on any"),
        ("--gres=gpu:2,licence:3", "--gpu 2 --resource licence=3"),
        ("-G 1 -L a:2,b", "--gpu 1 --resource a=2 --resource b=1"),
        ("--nice=50", "--priority -50"),
        ("--nice", "--priority -100"),
        ("--export=ALL,X=1 -A physics", "--export ALL,X=1 --tag account=physics"),
        ("-N 1 --parsable -Q", ""),
        ("--no-requeue", "--retry 0"),
        ("-W", "--wait"),
        ("--part=gpu --out out --dep afterok:1", "--queue gpu --output out --after-ok 1"),
        ("--gres=none", ""),
        ("--mail-type=END,FAIL --mail-user=ann@x", "--notify mail:ann@x --notify-on end,fail"),
        ("--mail-user=ann --mail-type=ALL", "--notify mail:ann --notify-on start,end,fail"),
        ("--mail-user=ann --mail-type=NONE", ""),
        ("--mail-user=ann --mail-type=FAIL,ARRAY_TASKS", "--notify mail:ann --notify-on fail,parts"),
    ],
)
def test_options_of_sbatch(line: str, ours: str) -> None:
    """In our words."""
    options = sbatch.Options()
    options.add(line.split(), "x:1")
    words = [word for _, each in options.translated(FLAGS) for word in each]
    assert (" ".join(words), options.unknown) == (ours, [])


def test_a_script_with_lines_of_windows_is_refused(taking: Any, run: Run) -> None:
    """It could never run: the kernel looks for an interpreter whose name ends with a carriage return."""
    Path("job.sh").write_bytes(b"#!/bin/sh\r\n#SBATCH -J x\r\necho\r\n")
    result = run("submit", "job.sh")
    assert (result.exit_code, taking.sent("POST", "/jobs")) == (2, [])
    assert "end as in Windows" in result.stderr
    assert r"sed -i 's/\r$//' job.sh" in result.stderr


def test_a_requeue_asks_for_no_more_than_the_built_in_queue_file_lets() -> None:
    """Every script with this line was refused."""
    options = sbatch.Options()
    options.add(["--requeue"], "x:1")
    [(_, words)] = options.translated(FLAGS)
    built_in = files("fairlead.config").joinpath("default.yaml").read_text()
    assert f'job.retry.max: "{words[1]}"' in built_in


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-p a,b", "a job is in one queue"),
        ("-o %b.txt", "there is no %b in '%b.txt'; there are %j (key)"),
        ("--gres=gpu:a100:many", "whole number"),
        ("-d afterok:1?afterok:2", "--after"),
        ("--mem=0", "--memory"),
        ("--time=soon", "--time-limit"),
        ("--exclusive", "whole node"),
        ("-n many", "whole number"),
        ("--signal=SOON@60", "say --signal SIG@TIME, such as USR1@60, with a time limit"),
        (f"--time={'1' * 5000}", "--time-limit"),
        (f"--mem={'1' * 5000}G", "--memory"),
        (f"-c {'1' * 5000}", "whole number"),
        (f"--nice={'1' * 5000}", "--priority"),
        ("--reservation=course", "a window (`fairlead maintenance ls`) says itself"),
    ],
)
def test_options_that_mean_something_else(line: str, said: str) -> None:
    """They are named, never guessed."""
    options = sbatch.Options()
    options.add(line.split(), "x:1")
    assert list(options.translated(FLAGS)) == []
    assert len(options.unknown) == 1
    assert said in options.unknown[0]


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("--gres=gpu:a100:2", "--gpu 2"),
        ("--gres=gpu:a100", "--gpu 1"),
        ("--gpus=a100:2,v100:1", "--gpu 3"),
        ("--gpus-per-node=a100:2", "--gpu 2"),
        ("--gpus-per-task=a100:2 -n 2", "--gpu 4 --cpu 2"),
    ],
)
def test_gpus_of_a_type_are_gpus(line: str, ours: str) -> None:
    """So many of any; that the type is not looked at is said. The job got none at all."""
    options = sbatch.Options()
    options.add(line.split(), "x:1")
    words = [word for _, each in options.translated(FLAGS) for word in each]
    assert " ".join(words) == ours
    [said] = options.unknown
    assert said == f"x:1: {line.split()[0]}: devices are chosen by number alone, so a100 is passed over"


def test_a_message_that_never_comes_is_named() -> None:
    """The others of the same line count."""
    options = sbatch.Options()
    options.add(["--mail-type=END,Time_Limit_80,BOGUS", "--mail-user=ann"], "x:1")
    assert list(options.translated(FLAGS)) == [("x:1", ["--notify", "mail:ann", "--notify-on", "end"])]
    [said] = options.unknown
    assert said.startswith("x:1: --mail-type=BOGUS,TIME_LIMIT_80: a message comes at BEGIN, END and FAIL")


def test_every_translation_is_an_option() -> None:
    """Of `submit`, but for those that other commands will bring."""
    from fairlead.cli.submit import submit

    known = {flag for param in submit.params for flag in param.opts}
    assert known | {"--array"} >= FLAGS


@pytest.mark.parametrize("words", [("--singleton", "--name", "a", "--", "true"), ("job.sh",)])
@pytest.mark.parametrize("command", ["submit", "run"])
def test_one_of_a_name_at_a_time(taking: Any, run: Run, command: str, words: tuple[str, ...]) -> None:
    """It waits for those that have its name to end, beside what it is told to wait for."""
    taking.on("GET", "/info", {"user": "ann"})
    for key, state, name in (("7", "running", "a"), ("8", "waiting", "a"), ("9", "running", "b"), ("6", "failed", "a")):
        taking.add(key, state, name=name)
    taking.add("1", "succeeded", name="a")
    taking.on("POST", "/jobs", lambda _: {"jobs": [taking.jobs["1"]]})
    write("#!/bin/sh\n#SBATCH -J a -d singleton\n")
    result = run(command, "--after", "5", *words)
    assert result.exit_code == 0, result.stderr
    [sent] = taking.sent("POST", "/jobs")
    assert sent["jobs"][0]["after"] == [
        {"key": "5", "awaited": "started"},
        {"key": "7", "awaited": "any"},
        {"key": "8", "awaited": "any"},
    ]


def test_the_jobs_of_a_file_name_those_that_they_wait_for(taking: Any, run: Run) -> None:
    """There the option would mean several jobs, of several names."""
    result = run("submit", "--singleton", "--file", "jobs.jsonl")
    assert (result.exit_code, "--singleton is about one job" in result.stderr) == (2, True)


def test_a_dependency_of_slurm_that_is_not_here_is_refused(taking: Any, run: Run) -> None:
    """The job was submitted without it, and began at once."""
    write("#!/bin/sh\n#SBATCH -d afterok:1?afterok:2\n")
    result = run("submit", "job.sh")
    assert (result.exit_code, taking.sent("POST", "/jobs")) == (2, [])
    assert "job.sh:2: --dependency=afterok:1?afterok:2: say --after, " in result.stderr
    assert run("submit", "--ignore-directives", "job.sh").exit_code == 0


def test_variables_of_slurm_that_a_script_reads_are_named(taking: Any, run: Run) -> None:
    """With what they are here: each part of an array had none, and did the work of no index."""
    write(
        "#!/bin/sh\n#SBATCH --array=1-2 --export=SLURM_NTASKS=2\n# SLURM_JOB_NODELIST\n"
        "SLURM_CPUS_PER_TASK=4\n./part $SLURM_ARRAY_TASK_ID ${SLURM_JOB_ID:-none} $SLURM_NTASKS $SLURM_CPUS_PER_TASK "
        "$SLURM_ARRAY_TASK_ID $SLURM_PROCID $SLURM_LOCALID\n"
    )
    assert run("submit", "--env", "SLURM_PROCID=0", "--ignore-directives", "job.sh").stderr == ""
    assert run("submit", "--env", "SLURM_LOCALID=0", "job.sh").stderr.splitlines() == [
        "fairlead: job.sh reads variables of other schedulers, which are not set here:",
        "  SLURM_ARRAY_TASK_ID is FAIRLEAD_ARRAY_INDEX",
        "  SLURM_JOB_ID is FAIRLEAD_KEY",
        "  SLURM_PROCID is nothing here; --env SLURM_PROCID=VALUE sets it",
    ]


def test_a_script_whose_directory_is_in_the_path_is_one(
    taking: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a command, and its lines were passed over without a word. Another program of that name is one."""
    text = write("#!/bin/sh\n#SBATCH -c 2\n", "mine")
    Path("mine").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("submit", "mine").exit_code == 0
    assert (body(taking)["resources"], body(taking)["script"]) == ({"cpu": 2}, text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mine").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "mine").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    assert run("submit", "mine").exit_code == 0
    assert "script" not in taking.sent("POST", "/jobs")[-1]["jobs"][0]


def test_what_the_service_refuses_is_named_with_its_line(taking: Any, run: Run, refuse: Run) -> None:
    """The queues of another cluster are the first that is not here; it was said of --queue alone."""
    taking.on("POST", "/jobs", refuse(422, "there is no queue gpu; name one", field="jobs.0.queue"))
    write("#!/bin/sh\n#SBATCH -J a\n#SBATCH -p gpu\n")
    for words, where in (((), "job.sh:3: "), (("--queue", "gpu"), "")):
        result = run("submit", *words, "job.sh")
        assert (result.stderr, result.exit_code) == (
            f"fairlead: {where}--queue: there is no queue gpu; name one\n",
            4,
        )


def test_commands_of_slurm_that_a_script_calls_are_named(
    taking: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with status 127 at the first of them, when its turn came."""
    write(
        "#!/bin/sh\n# srun\necho srun squeue\nHOST=$(scontrol show hostnames $NODES | head -n 1)\nSRUN='srun --exact'\n"
        'if A=1 sacct -j 1; then bsub <x; fi; for f in *; do sbatch "$f"; done\nmysbatch x; ./qsub\n'
    )
    assert run("submit", "job.sh").stderr.splitlines() == [
        "fairlead: job.sh calls commands that are not on this machine:",
        "  scontrol: `hostname` is the one node of a job; `fairlead show` says what is known of one",
        "  srun: leave it out, the job has its cores already; several tasks start with mpirun, or with & and wait",
        "  sacct is `fairlead ls -a` here",
        "  bsub is `fairlead submit` here",
        "  sbatch is `fairlead submit` here",
    ]
    for name in ("srun", "scontrol", "sacct", "bsub", "sbatch"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("submit", "job.sh").stderr == ""


# -- the environment -------------------------------------------------------------------------------------------------


def test_the_environment_of_a_job(taking: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said more closely counts."""
    write("A=file\nB=file\nC=file\n", "e")
    monkeypatch.setenv("B", "shell")
    monkeypatch.setenv("D", "shell")
    run("submit", "--env-file", "e", "--export", "B,C=export", "--env", "C=env", "--env", "D", "--", "true")
    assert body(taking)["env"] == {"A": "file", "B": "shell", "C": "env", "D": "shell"}


def test_a_value_of_a_file_is_all_that_stands_behind_its_name(taking: Any, run: Run) -> None:
    """Blanks at its end too, and what is the end of a line to Python alone."""
    write("# first\r\n  A='x' \t\r\n\n \nB=a\u2028b\x0cc=d\n", "e")
    run("submit", "--env-file", "e", "--", "true")
    assert body(taking)["env"] == {"A": "'x' \t", "B": "a\u2028b\x0cc=d"}


def test_the_whole_shell(taking: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what is about the shell itself and the way to the service."""
    monkeypatch.setenv("MINE", "1")
    monkeypatch.setenv("FAIRLEAD_TOKEN", "secret")
    run("submit", "--export", "all,MINE=2", "--", "true")
    env = body(taking)["env"]
    assert (env["MINE"], "PATH" in env, "FAIRLEAD_TOKEN" in env, "FAIRLEAD_SOCKET" in env) == ("2", True, False, False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--export", "NOT_THERE"), "--export: NOT_THERE is not set here; write NOT_THERE=VALUE"),
        (("--export", "none,X=1"), "--export: none stands alone"),
        (("--export", "a=1,,b=2"), "has an empty name"),
        (("--env-file", "nothing"), "nothing: cannot be read"),
        (("--env-file", "bad"), "--env-file: bad:2: 'no pair' is not NAME=VALUE"),
    ],
)
def test_mistakes_in_the_environment(taking: Any, run: Run, options: tuple[str, str], said: str) -> None:
    """Each with its place."""
    write("A=1\nno pair\n", "bad")
    result = run("submit", *options, "--", "true")
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize("word", ["json", "yaml"])
def test_a_format_is_no_file(taking: Any, run: Run, word: str) -> None:
    """Elsewhere --output is the format."""
    result = run("submit", "--output", word, "--", "true")
    assert (result.exit_code, f"write --format {word}, or ./{word}" in result.stderr) == (2, True)


def test_devices_are_not_chosen_by_a_variable(taking: Any, run: Run) -> None:
    """It was passed over without a word, and the job saw no device."""
    result = run("submit", "--env", "CUDA_VISIBLE_DEVICES=1", "--", "true")
    said = "fairlead: --env: CUDA_VISIBLE_DEVICES is set by a service that has devices, to those that --gpu N gets\n"
    assert (result.stderr, result.exit_code) == (said, 0)
    assert body(taking)["env"] == {"CUDA_VISIBLE_DEVICES": "1"}
