"""What a run is given and what is reported of it."""

from __future__ import annotations

import os
import resource
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.local import launch
from fairlead.local.machine import Machine
from fairlead.local.runs import RunReport
from fairlead.service.http.connections import raise_descriptors

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.real
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run work as another user")
NOBODY = 65534


def test_the_exit_status_is_that_of_the_command(bench: Bench) -> None:
    """A command that exits with 3 is reported with 3."""
    report = bench.shell("a", "exit 3")
    assert (report.exit_code, report.signal, report.error) == (3, None, "")
    assert not any((report.stopped, report.timed_out, report.lost, report.oom))


def test_the_signal_that_ended_it_is_reported(bench: Bench) -> None:
    """A command that dies of a signal has a signal and no exit status."""
    report = bench.shell("a", "kill -SEGV $$")
    assert (report.exit_code, report.signal) == (None, 11)


def test_times_and_pid_are_reported(bench: Bench) -> None:
    """The begin tells the pid; the end has the same pid and does not lie before the begin."""
    bench.shell("a", "echo $$")
    begin, end = bench.begins[bench.key("a")], bench.end("a")
    assert begin.pid == end.pid == int(bench.output("a"))
    assert begin.started_at_ms is not None
    assert end.ended_at_ms is not None
    assert begin.started_at_ms <= end.ended_at_ms


def test_cpu_time_counts_the_whole_tree(each_bench: Bench) -> None:
    """CPU time of children and grandchildren is counted, and sleeping is not."""
    burn = "import os; n = 0\nwhile sum(os.times()[:2]) < 0.15: n += 1"
    report = each_bench.run(
        "a", sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    )
    assert 150 <= report.cpu_ms < 2_000
    assert each_bench.run("b", "sleep", "0.3").cpu_ms < 100


def test_peak_memory_is_recorded(each_bench: Bench) -> None:
    """A process that held 80 MB for a moment is reported with at least that, and not with much more."""
    report = each_bench.run("a", sys.executable, "-c", "x = bytearray(80_000_000)")
    assert 80_000_000 <= report.peak_memory_bytes < 160_000_000


HOLD = """
import pathlib, sys, time
x = bytearray(60_000_000)
here = pathlib.Path(sys.argv[1])
(here / sys.argv[2]).touch()
while len(list(here.iterdir())) < 2:
    time.sleep(0.01)
time.sleep(0.5)
"""


def test_a_peak_is_that_of_the_whole_tree(each_bench: Bench, tmp_path: Path) -> None:
    """Two processes that hold 60 MB each at the same time are 120 MB."""
    (both := tmp_path / "both").mkdir()
    (script := tmp_path / "hold.py").write_text(HOLD)
    each = f'"{sys.executable}" {script} {both}'
    report = each_bench.shell("a", f"{each} one & {each} other & wait")
    assert 120_000_000 <= report.peak_memory_bytes < 240_000_000


def test_usage_of_a_running_one(each_bench: Bench) -> None:
    """While it runs, CPU time and memory can be asked for; when it has ended, they cannot."""
    code = "x = bytearray(50_000_000)\nprint('ready', flush=True)\nwhile True: pass"
    each_bench.start("a", sys.executable, "-c", code)
    each_bench.says("a", "ready")
    first = each_bench.machine.usage(each_bench.key("a"))
    assert first is not None
    assert first.memory_bytes >= 50_000_000
    each_bench.machine.stop(each_bench.key("a"), grace_ms=0)
    end = each_bench.end("a")
    assert end.cpu_ms >= first.cpu_ms > 0
    assert each_bench.machine.usage(each_bench.key("a")) is None


def test_output_goes_to_files(bench: Bench) -> None:
    """Standard output and standard error are kept apart, and standard input is empty."""
    bench.shell("a", "cat; echo out; echo err >&2")
    assert bench.output("a") == "out\n"
    assert bench.machine.stderr_path(bench.key("a")).read_text() == "err\n"


def test_big_output_is_kept_whole(bench: Bench) -> None:
    """Ten million bytes arrive to the last one."""
    assert bench.shell("a", "head -c 10000000 /dev/zero").exit_code == 0
    assert bench.machine.stdout_path(bench.key("a")).stat().st_size == 10_000_000


def test_logs_are_private(bench: Bench) -> None:
    """Nobody else can read what the job writes, nor the directory's list."""
    bench.shell("a", "umask")
    path = bench.machine.stdout_path(bench.key("a"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert bench.output("a").strip() == "0022"


def test_the_environment_is_clean(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job sees its own variables and the basics of its user, and nothing of the service's."""
    monkeypatch.setenv("SECRET_OF_THE_SERVICE", "x")
    bench.run("a", "env", env={"FAIRLEAD_QUEUE": "root.a", "PATH": os.environ["PATH"]})
    seen = dict(line.split("=", 1) for line in bench.output("a").splitlines())
    assert "SECRET_OF_THE_SERVICE" not in seen
    assert seen["FAIRLEAD_QUEUE"] == "root.a"
    assert seen["PATH"] == os.environ["PATH"]
    assert {"HOME", "USER", "LOGNAME", "SHELL", "LANG"} <= seen.keys()
    assert seen["FAIRLEAD_RUN"].startswith(bench.key("a"))


def test_no_signal_is_blocked_or_ignored(bench: Bench) -> None:
    """The job begins with the signals of a fresh process, whatever the service and the supervisor do with theirs."""
    bench.run("a", "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")
    of_the_c_library = 0b11 << 31
    masks = [int(line.split()[1], 16) & ~of_the_c_library for line in bench.output("a").splitlines()]
    assert masks == [0, 0]


def test_no_file_of_the_service_is_open(bench: Bench) -> None:
    """The job has its three streams and nothing else."""
    hole = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(hole, True)
    try:
        bench.run("a", "ls", "/proc/self/fd")
    finally:
        os.close(hole)
    assert len(bench.output("a").split()) == 4  # the fourth is the directory that ls reads


def test_it_is_the_head_of_its_own_session(bench: Bench) -> None:
    """No terminal and no signal of the service's session reaches the job."""
    bench.run("a", sys.executable, "-c", "import os; print(os.getpid() == os.getsid(0) == os.getpgrp())")
    assert bench.output("a") == "True\n"


def test_what_watches_over_it_stands_back_and_it_does_not(bench: Bench) -> None:
    """The job is as nice as the service, its supervisor nicer: for the service and the job others wait."""
    own = os.nice(0)
    watched = "import os; print(os.nice(0), os.getpriority(os.PRIO_PROCESS, os.getppid()))"
    bench.run("a", sys.executable, "-c", watched)
    assert bench.output("a") == (f"{own} {own + 10}\n" if os.geteuid() == 0 else f"{own} {own}\n")


def test_it_has_the_descriptors_that_the_service_began_with(bench: Bench) -> None:
    """The service takes more for itself; a program that uses `select` would not bear them."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        raise_descriptors()
        bench.run("a", "sh", "-c", "ulimit -Sn; ulimit -Hn")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert bench.output("a").split()[0] == str(launch.DESCRIPTORS)


def test_it_runs_where_it_was_told_to(bench: Bench) -> None:
    """The working directory is the one of the specification."""
    bench.run("a", "pwd", cwd="/usr")
    assert bench.output("a") == "/usr\n"


# --- what cannot be started ---


def test_a_command_that_is_not_there(bench: Bench) -> None:
    """The sentence names the command and where it was looked for; the status is the shell's."""
    report = bench.run("a", "no-such-command")
    assert report.exit_code == 127
    assert "'no-such-command' was not found in PATH (/usr/local/sbin:" in report.error


@pytest.mark.parametrize(
    ("content", "mode", "status", "want"),
    [
        ("#!/no/such/interpreter\n", 0o755, 127, "the interpreter named in the first line"),
        ("text\n", 0o755, 126, "neither a program nor a script"),
        ("#!/bin/sh\n", 0o644, 126, "may not be executed"),
        (None, 0, 127, "does not exist"),
    ],
)
def test_a_file_that_is_no_command(bench: Bench, content: str | None, mode: int, status: int, want: str) -> None:
    """Each way in which a file is no command has its own sentence."""
    path = bench.directory.parent / "thing"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    report = bench.run("a", str(path))
    assert report.exit_code == status
    assert want in report.error


def test_a_directory_is_no_command(bench: Bench) -> None:
    """A directory is called one."""
    report = bench.run("a", "/usr")
    assert (report.exit_code, report.error) == (126, "'/usr' is a directory, not a command")


LONG = "echo 'ü'; " * 800


@pytest.mark.parametrize(
    ("command", "more", "status", "want"),
    [
        (LONG, {}, 126, "for a line of shell, write: sh -c 'LINE'"),
        (
            "no-such-thing",
            {"env": {"PATH": ":".join(f"/opt/program-{n}" for n in range(400))}},
            127,
            "not found in PATH",
        ),
        ("/bin/true", {"cwd": "/" + "/".join(["a" * 200] * 30)}, 126, "cannot be entered"),
    ],
    ids=["command", "path", "directory"],
)
def test_what_is_wrong_with_a_long_name_is_told(
    bench: Bench, command: str, more: dict[str, Any], status: int, want: str
) -> None:
    """As with a short one; the name is cut, not the sentence."""
    report = bench.run("a", command, **more)
    assert (report.exit_code, report.lost) == (status, False), report.note
    assert want in report.error
    assert len(report.error) <= 1000


def test_a_working_directory_that_is_not_there(bench: Bench) -> None:
    """The sentence names the directory."""
    report = bench.run("a", "true", cwd="/no/such/place")
    assert report.exit_code == 126
    assert report.error == "the working directory '/no/such/place' cannot be entered: No such file or directory"


def test_too_long_a_command(bench: Bench) -> None:
    """More arguments than the kernel takes are refused with a sentence."""
    report = bench.run("a", "true", *["x" * 100_000] * 60)
    assert report.exit_code == 126
    assert "too long" in report.error


@pytest.mark.parametrize(
    ("more", "want"),
    [
        ({"command": ()}, "no command"),
        ({"command": ("a\0b",)}, "NUL"),
        ({"cwd": "here"}, "not an absolute path"),
        ({"env": {"A=B": "1"}}, "'A=B' cannot be the name"),
        ({"memory": -1}, "negative"),
        ({"gpus": 1}, "asks for 1 GPUs; this machine has 0, and 0 are free"),
    ],
)
def test_what_can_never_be_executed_is_refused(bench: Bench, more: dict[str, object], want: str) -> None:
    """A refused run has ended at once, with a sentence; it is refused for ever, and the end is not told twice."""
    bench.open(gpus=())
    spec = bench.spec("a", *more.pop("command", ("true",)), **more)  # type: ignore[misc]
    report = bench.machine.start(spec)
    assert want in report.error
    assert (report.exit_code, report.started_at_ms) == (126, None)
    assert report.ended_at_ms is not None
    assert bench.machine.start(bench.spec("a", "true")) == report
    assert bench.open().start(bench.spec("a", "true")) == report
    assert not bench.ends


def test_a_key_that_is_no_name(bench: Bench) -> None:
    """A key that could leave the directory is refused before anything is done."""
    for key in ("", "..", "a/b", ".hidden", "x" * 129, "a\n"):
        with pytest.raises(ValueError, match="cannot be called"):
            bench.machine.report(key)


def test_a_log_that_cannot_be_made(bench: Bench) -> None:
    """A log file that is there already is never written through: a link to somebody's file would be the same."""
    victim = bench.directory.parent / "victim"
    victim.write_text("precious")
    place = bench.machine.stdout_path(bench.key("a"))
    place.parent.mkdir()
    place.symlink_to(victim)
    report = bench.shell("a", "echo overwritten")
    assert "stdout.log cannot be made: File exists" in report.error
    assert victim.read_text() == "precious"


# --- once for ever ---


def test_a_second_start_executes_nothing(bench: Bench) -> None:
    """Starting a key again, while it runs or when it has ended, here or in a later process, executes it once."""
    mark = bench.directory.parent / "mark"
    script = f"echo x >> {mark}; sleep 0.2"
    bench.start("a", "/bin/sh", "-c", script)
    for _ in range(3):
        assert bench.machine.start(bench.spec("a", "/bin/sh", "-c", script)).ended_at_ms is None
    end = bench.end("a")
    assert bench.machine.start(bench.spec("a", "/bin/sh", "-c", script)) == end
    assert bench.open().start(bench.spec("a", "/bin/sh", "-c", script)) == end
    assert mark.read_text() == "x\n"
    assert bench.ends == [end]


def test_a_forgotten_run_is_not_executed_again(bench: Bench) -> None:
    """Forgetting removes the control files and the environment in them, keeps logs and report, and stays in force."""
    mark = bench.directory.parent / "mark"
    end = bench.shell("a", f"echo x >> {mark}; echo out", env={"PASSWORD": "p"})
    bench.machine.forget(bench.key("a"))
    directory = bench.machine.stdout_path(bench.key("a")).parent
    assert sorted(each.name for each in directory.iterdir()) == ["forgotten", "stderr.log", "stdout.log"]
    assert bench.machine.report(bench.key("a")) == end
    assert bench.open().start(bench.spec("a", "/bin/sh", "-c", f"echo x >> {mark}")) == end
    assert bench.machine.adopt() == []
    assert mark.read_text() == "x\n"


def test_forgetting_twice_is_harmless(bench: Bench) -> None:
    """A service that died after forgetting may say so again."""
    end = bench.shell("a", "true")
    bench.machine.forget(bench.key("a"))
    bench.machine.forget(bench.key("a"))
    assert bench.machine.report(bench.key("a")) == end


def test_purging_removes_everything(bench: Bench) -> None:
    """After a purge nothing is known and nothing is on the disk."""
    bench.shell("a", "true")
    bench.machine.purge(bench.key("a"))
    assert bench.machine.report(bench.key("a")) is None
    assert list(bench.directory.iterdir()) == []


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_purge_that_was_cut_off_is_finished_by_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, forgotten: bool
) -> None:
    """Wherever it was: after each file that went, and before the directory did."""
    name = "forgotten" if forgotten else "whole"
    bench.shell(name, "true")
    if forgotten:
        bench.machine.forget(bench.key(name))
    unlink = Path.unlink

    def cut_off(path: Path, **options: bool) -> None:
        unlink(path, **options)
        raise KeyboardInterrupt

    directory = bench.directory / bench.key(name)
    monkeypatch.setattr(Path, "unlink", cut_off)
    cuts = len(list(directory.iterdir()))
    assert cuts > 2
    for left in range(cuts - 1, -1, -1):
        with pytest.raises(KeyboardInterrupt):
            bench.machine.purge(bench.key(name))
        assert len(list(directory.iterdir())) == left
    monkeypatch.setattr(Path, "unlink", unlink)
    bench.machine.purge(bench.key(name))
    assert not directory.exists()


def test_what_runs_is_not_removed(bench: Bench) -> None:
    """Neither forget nor purge touches a run that has not ended."""
    bench.start("a", "sleep", "60")
    for remove in (bench.machine.forget, bench.machine.purge):
        with pytest.raises(ValueError, match="has not ended"):
            remove(bench.key("a"))
    assert bench.machine.report(bench.key("a")) is not None


def test_unknown_runs(bench: Bench) -> None:
    """Nothing is known of a run that never was, and it cannot be stopped."""
    assert bench.machine.report("nothing") is None
    assert bench.machine.usage("nothing") is None
    with pytest.raises(KeyError, match="no run 'nothing'"):
        bench.machine.stop("nothing")


def test_a_listener_that_fails_harms_nobody(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """An end whose listener raises is logged; the next one is told as usual."""
    seen: list[RunReport] = []

    def listen(report: RunReport) -> None:
        seen.append(report)
        raise RuntimeError("no")

    machine = Machine(bench.directory, on_end=listen)
    bench.machines.append(machine)
    for name in "ab":
        machine.start(bench.spec(name, "true"))
        bench.until(lambda name=name: [each for each in seen if each.key == bench.key(name)])
    assert len(seen) == 2
    assert "could not be handed on: no" in caplog.text


# --- devices ---


def test_gpus_are_given_out_one_by_one(bench: Bench) -> None:
    """Each run sees the lowest free devices, the same device is never given twice, and a freed one is given again."""
    bench.open(gpus=[0, 1, 2])
    show = "echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES; exec sleep 60"
    assert bench.start("a", "/bin/sh", "-c", show, gpus=2).gpus == (0, 1)
    assert bench.start("b", "/bin/sh", "-c", show, gpus=1).gpus == (2,)
    assert "3, and 0 are free" in bench.start("c", "true", gpus=1).error
    bench.says("a", "0,1 0,1")
    bench.says("b", "2 2")
    bench.machine.stop(bench.key("a"), grace_ms=0)
    assert bench.end("a").gpus == (0, 1)
    assert bench.start("d", "sleep", "60", gpus=1).gpus == (0,)


def test_who_asked_for_no_gpu_sees_none(bench: Bench) -> None:
    """On a machine with GPUs the variable is empty rather than unset; the caller cannot override it."""
    bench.open(gpus=[0])
    bench.shell("a", 'echo "[$CUDA_VISIBLE_DEVICES] $NVIDIA_VISIBLE_DEVICES"', env={"CUDA_VISIBLE_DEVICES": "0"})
    assert bench.output("a") == "[] void\n"


def test_gpus_stay_taken_over_a_restart(bench: Bench) -> None:
    """A later process does not give out a device that a run of an earlier one still has, even if it forgot to adopt."""
    bench.open(gpus=[0, 1])
    bench.start("a", "sleep", "60", gpus=1)
    bench.machine.close()
    bench.open(gpus=[0, 1])
    assert bench.start("b", "sleep", "60", gpus=1).gpus == (1,)


def test_capacity_is_found_and_can_be_declared(bench: Bench) -> None:
    """What is declared replaces what is found."""
    found = bench.open(gpus=[4, 5]).capacity()
    assert 0 < found["vcore"] <= (os.cpu_count() or 1) * 1000
    assert 0 < found["memory"] <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found["gpu"] == 2
    declared = bench.open(capacity={"vcore": 64_000, "licence": 3}).capacity()
    assert (declared["vcore"], declared["licence"], declared["memory"]) == (64_000, 3, found["memory"])


# --- other users ---


@root_only
def test_work_runs_as_its_submitter(bench: Bench) -> None:
    """User, group and further groups are the submitter's, and no right of root is left."""
    bench.shell("a", "id -u; id -g; id -G; grep CapEff /proc/self/status", uid=NOBODY, gid=NOBODY, groups=(NOBODY, 7))
    assert bench.output("a").split() == [*f"{NOBODY} {NOBODY} {NOBODY} 7".split(), "CapEff:", "0" * 16]


@root_only
def test_the_submitter_owns_his_logs_and_nothing_else(bench: Bench) -> None:
    """He can read his log and write to it by name, but make or remove nothing in the run's directory."""
    directory = bench.directory / bench.key("a")
    report = bench.shell("a", f"echo by-name > /dev/stdout; touch {directory}/result; cat {directory}/spec", uid=NOBODY)
    assert report.exit_code != 0
    path = bench.machine.stdout_path(bench.key("a"))
    assert path.read_text() == "by-name\n"
    assert (path.stat().st_uid, path.parent.stat().st_uid) == (NOBODY, 0)
    assert bench.machine.stderr_path(bench.key("a")).read_text().count("Permission denied") == 2


@root_only
def test_the_submitter_needs_rights_of_his_own(bench: Bench) -> None:
    """A directory and a program that only root may enter or execute are refused to others."""
    private = bench.directory.parent / "private"
    private.mkdir(mode=0o700)
    assert "cannot be entered: Permission denied" in bench.run("a", "true", cwd=str(private), uid=NOBODY).error
    program = private / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert "may not be executed by this user" in bench.run("b", str(program), uid=NOBODY).error


@root_only
def test_the_submitter_cannot_reach_the_supervisor(bench: Bench) -> None:
    """Work of another user can kill everything it may, and its end is still reported."""
    report = bench.shell("a", "kill -9 $PPID; exit 5", uid=NOBODY)
    assert (report.exit_code, report.lost) == (5, False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can run work as anybody")
def test_others_are_refused_without_root(bench: Bench) -> None:
    """Without root's rights only the service's own user is served, and the sentence says so."""
    assert "is not root" in bench.run("a", "true", uid=os.geteuid() + 1).error
    assert bench.run("b", "true", uid=os.geteuid()).exit_code == 0
