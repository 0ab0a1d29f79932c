"""What a process finds that comes after one that was killed. The service here is a real process, killed for real."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlead.local import launch
from fairlead.local.live_runs import load_by_core
from fairlead.local.means import Means
from fairlead.local.runs import RunReport
from fairlead.local.supervisor import kernel, run_files

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.real
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
SOURCE = Path(launch.__file__).parents[2]


class Service:
    """Another process with a machine on the bench's directory; it does what it is told and waits."""

    def __init__(self, bench: Bench, script: str) -> None:
        program = textwrap.dedent("""
            import sys, time
            from pathlib import Path
            from fairlead.local.machine import Machine
            from fairlead.local.runs import RunSpec
            prefix = sys.argv[2]
            begun = set()
            def on_begin(report):
                begun.add(report.key)
            machine = Machine(Path(sys.argv[1]), on_end=lambda report: None, on_begin=on_begin)
            def said(name):
                path = machine.stdout_path(prefix + name)
                return path.read_text() if path.exists() else ""
            def start(name, *command, **more):
                machine.start(RunSpec(key=prefix + name, command=command, **more))
            def start_and_wait(name, *command, **more):
                start(name, *command, **more)
                while prefix + name not in begun:
                    time.sleep(0.005)
        """)
        program += textwrap.dedent(script) + "\nprint('done', flush=True)\ntime.sleep(600)\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, str(bench.directory), bench.prefix],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"done\n"

    def kill(self) -> None:
        """Killed like by `kill -9`, with its whole process group: only what has left it survives."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def killed_after(bench: Bench, script: str) -> None:
    Service(bench, script).kill()


def adopted(bench: Bench, name: str) -> RunReport:
    (report,) = [each for each in bench.machine.adopt() if each.key == bench.key(name)]
    return report


def when_told(bench: Bench, first: str = ":", then: str = ":") -> tuple[Path, str]:
    """A script that does something, waits until a file is there, and does the rest; and that file."""
    file = bench.directory.parent / "go-on"
    return file, f"{first}; while [ ! -e {file} ]; do sleep 0.02; done; {then}"


def test_running_work_is_adopted(bench: Bench) -> None:
    """Work goes on when the service is killed; the next process watches it to its real end."""
    end, script = when_told(bench, "echo $$", "echo end; exit 6")
    killed_after(bench, f"start_and_wait('a', '/bin/sh', '-c', {script!r})")
    found = adopted(bench, "a")
    assert found.ended_at_ms is None
    assert found.pid is not None
    assert kernel.process(found.pid) is not None
    end.touch()
    report = bench.end("a")
    assert (report.exit_code, report.pid, report.started_at_ms) == (6, found.pid, found.started_at_ms)
    assert bench.output("a") == f"{found.pid}\nend\n"


def test_adopting_twice_changes_nothing(bench: Bench) -> None:
    """The second answer equals the first, and the end is told once."""
    end, script = when_told(bench)
    killed_after(bench, f"start_and_wait('a', '/bin/sh', '-c', {script!r})")
    assert bench.machine.adopt() == bench.machine.adopt()
    end.touch()
    bench.end("a")
    time.sleep(0.05)
    assert len(bench.ends) == 1


def test_adopted_work_can_be_stopped(bench: Bench) -> None:
    """An adopted run obeys like one's own."""
    killed_after(bench, "start_and_wait('a', 'sleep', '60')")
    assert adopted(bench, "a").ended_at_ms is None
    bench.machine.stop(bench.key("a"))
    report = bench.end("a")
    assert (report.signal, report.stopped) == (15, True)


def test_work_that_ended_meanwhile_has_its_real_status(bench: Bench) -> None:
    """What ended while nobody was there is told by adopt with its real status, and not told again."""
    service = Service(bench, "start_and_wait('a', '/bin/sh', '-c', 'sleep 0.2; exit 9')")
    service.kill()
    bench.until(lambda: not bench.supervisors())
    report = adopted(bench, "a")
    assert (report.exit_code, report.lost) == (9, False)
    assert report.cpu_ms > 0
    time.sleep(0.05)
    assert bench.ends == []


def test_the_grace_goes_on_without_the_service(bench: Bench) -> None:
    """A stop that was asked for is carried through though the service dies in between."""
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    service = Service(
        bench,
        f"""
        start('a', '/bin/sh', '-c', {script!r})
        while 'ready' not in said('a'):
            time.sleep(0.005)
        machine.stop(prefix + 'a', 400)
        """,
    )
    service.kill()
    assert bench.processes()
    bench.until(lambda: not bench.supervisors())
    report = adopted(bench, "a")
    assert (report.signal, report.stopped) == (9, True)


def test_a_stop_that_was_not_delivered_is_delivered_by_the_next(bench: Bench) -> None:
    """The service died after it wrote the wish and before it told the supervisor."""
    killed_after(bench, "start_and_wait('a', 'sleep', '60')")
    (supervisor,) = bench.supervisors()
    bench.until(lambda: (found := kernel.process(supervisor)) is not None and found.state == "S")  # it waits
    place = str(bench.directory / bench.key("a"))
    run_files.write(place, run_files.STOP, {"grace_ms": 1000, "at_ms": run_files.now_ms()})
    time.sleep(0.05)
    assert bench.processes()
    adopted(bench, "a")
    assert bench.end("a").stopped


def test_a_supervisor_killed_meanwhile(bench: Bench) -> None:
    """Service and supervisor were both killed: what is left of the run is cleared away, and it is lost."""
    child = "import os, time; os.setsid(); print('ready', flush=True); time.sleep(60)"
    service = Service(
        bench, f"start_and_wait('a', '/bin/sh', '-c', '\"{sys.executable}\" -c \"$0\" & wait', {child!r})"
    )
    bench.open()
    bench.says("a", "ready")
    service.kill()
    (supervisor,) = bench.supervisors()
    os.kill(supervisor, signal.SIGKILL)
    bench.until(lambda: kernel.process(supervisor) is None)
    assert bench.processes()
    report = adopted(bench, "a")
    assert report.lost
    assert report.ended_at_ms is not None
    assert bench.processes() == []
    assert adopted(bench, "a") == report
    assert bench.ends == []


def claim_of(bench: Bench, name: str) -> Path:
    return bench.directory / bench.key(name) / run_files.CLAIM


def forge_claim(bench: Bench, name: str, **changes: object) -> None:
    """A run whose claim names a living process that is not its supervisor: this test."""
    bench.machine.start(bench.spec(name, "true"))
    bench.end(name)
    place = bench.directory / bench.key(name)
    claim = run_files.read(str(claim_of(bench, name).parent), run_files.CLAIM)
    assert claim is not None
    (place / run_files.RESULT).unlink()
    me = kernel.process(os.getpid())
    assert me is not None
    claim.update({"supervisor": me.pid, "supervisor_ticks": me.started_ticks, **changes})
    run_files.write(str(place), run_files.CLAIM, claim)
    bench.ends.clear()
    bench.open()


def test_a_recycled_pid_is_not_taken_for_the_supervisor(bench: Bench) -> None:
    """A process with the same pid but another start time is somebody else: the run is lost, and he is left alone."""
    me = kernel.process(os.getpid())
    assert me is not None
    forge_claim(bench, "a", supervisor_ticks=me.started_ticks - 1)
    assert adopted(bench, "a").lost


def test_a_loss_that_is_seen_at_an_order_to_stop_is_told(bench: Bench) -> None:
    """By a supervisor of an earlier service that began late, and died: its job was stopping until the next restart."""
    forge_claim(bench, "a", boot="another")
    bench.machine.stop(bench.key("a"), 0)
    assert [(each.key, each.lost) for each in bench.ends] == [(bench.key("a"), True)]


def test_a_restarted_machine_has_lost_its_runs(bench: Bench) -> None:
    """After a restart of the machine even equal pid and start time mean nothing."""
    forge_claim(bench, "a", boot="another")
    report = adopted(bench, "a")
    assert report.lost
    assert report.note == "the machine was restarted while it ran"


def test_what_was_being_forgotten_is_cleared_up_by_the_next(bench: Bench) -> None:
    """Else the variables of an ended job stood on the disk for as long as its output."""
    bench.run("a", "/bin/echo", "said", env={"SECRET": "x"})
    directory = bench.machine.stdout_path(bench.key("a")).parent
    kept = {each.name: each.read_bytes() for each in directory.iterdir()}
    bench.machine.forget(bench.key("a"))
    for name, content in kept.items():
        (directory / name).write_bytes(content)
    bench.machine.close()
    assert bench.open().adopt() == []
    assert {each.name for each in directory.iterdir()} == {"forgotten", "stdout.log", "stderr.log"}


def test_an_adopted_run_weighs_on_its_cores_as_before(bench: Bench) -> None:
    """Where cores are given out for want of a controller: else what starts next shared a core with it first of all."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("with one core there is nothing to choose")
    before = bench.open(means=Means())
    bench.start("a", "/bin/sleep", "30", vcore=700)
    load = load_by_core(before._live.values())
    assert list(load.values()) == [700]
    before.close()
    bench.open(means=Means()).adopt()
    assert load_by_core(bench.machine._live.values()) == load


def test_a_run_that_was_never_executed(bench: Bench) -> None:
    """Prepared, but nobody has claimed it: it is reported as never executed, and can be started."""
    place = bench.directory / bench.key("a")
    bench.machine.adopt()
    place.mkdir()
    run_files.write(str(place), run_files.SPEC, {"half": "written by a service that was killed then"})
    assert adopted(bench, "a") == RunReport(key=bench.key("a"))
    assert bench.shell("a", "exit 3").exit_code == 3


def test_a_run_stopped_before_it_was_executed(bench: Bench) -> None:
    """It has ended, was stopped, and is never executed, by nobody."""
    mark = bench.directory.parent / "mark"
    (bench.directory).mkdir(exist_ok=True)
    place = bench.directory / bench.key("a")
    bench.machine.adopt()
    place.mkdir()
    bench.machine.stop(bench.key("a"))
    report = adopted(bench, "a")
    assert (report.stopped, report.started_at_ms, report.error) == (True, None, "")
    assert report.ended_at_ms is not None
    assert bench.machine.start(bench.spec("a", "touch", str(mark))) == report
    assert bench.open().start(bench.spec("a", "touch", str(mark))) == report
    assert not mark.exists()


def test_two_supervisors_of_one_run(bench: Bench) -> None:
    """Two supervisors on their way, one sent by a service that was killed: one executes the job, one end is told."""
    for number in range(5):
        name, mark = f"a{number}", bench.directory.parent / f"mark{number}"
        Service(bench, f"start('{name}', '/bin/sh', '-c', 'echo x >> {mark}; sleep 0.1; exit 3')").kill()
        # Start it again before anyone has had the time to claim it, or after: both are in order.
        report = bench.machine.start(bench.spec(name, "/bin/sh", "-c", f"echo x >> {mark}; sleep 0.1; exit 3"))
        if report.ended_at_ms is None:
            report = bench.end(name)
        assert report.exit_code == 3
        assert mark.read_text() == "x\n"
    assert len(bench.ends) == len({each.key for each in bench.ends})


def test_the_slower_supervisor_gives_way(bench: Bench) -> None:
    """A supervisor that finds the claim taken executes nothing; the machine then watches the one that has it."""
    bench.machine.adopt()
    mark = bench.directory.parent / "mark"
    end, script = when_told(bench, f"echo x >> {mark}", "exit 3")
    bench.machine.start(bench.spec("a", "/bin/sh", "-c", script))
    bench.wait(lambda: bench.begins)
    pid, words = launch.start_supervisor(bench.directory / bench.key("a"))
    _, status = os.waitpid(pid, 0)
    os.close(words)
    assert os.waitstatus_to_exitcode(status) == 3
    end.touch()
    assert bench.end("a").exit_code == 3
    assert mark.read_text() == "x\n"


def test_a_rival_that_was_faster_is_watched(bench: Bench) -> None:
    """The machine's own supervisor came second: the run of the first one is followed to its end."""
    machine = bench.machine
    machine.adopt()
    mark = bench.directory.parent / "mark"
    end, script = when_told(bench, f"echo x >> {mark}", "exit 3")
    killed_after(bench, f"start_and_wait('a', '/bin/sh', '-c', {script!r})")
    claim = claim_of(bench, "a")
    claim.rename(claim.with_name("hidden"))
    launched = machine.start(bench.spec("a", "/bin/sh", "-c", script))
    claim.with_name("hidden").rename(claim)
    assert launched.ended_at_ms is None
    end.touch()
    assert bench.end("a").exit_code == 3
    assert mark.read_text() == "x\n"
    assert len(bench.ends) == 1


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment(bench: Bench, seed: int) -> None:
    """A service that is killed while it starts a dozen runs: each is executed once or not yet, and none is lost."""
    marks = bench.directory.parent
    command = f"['/bin/sh', '-c', 'echo x >> {marks}/' + name + '; exit 3']"
    service = Service(
        bench,
        f"""
        import threading
        def work():
            for number in range(12):
                name = 'r%d' % number
                start(name, *{command})
        threading.Thread(target=work, daemon=True).start()
        """,
    )
    time.sleep(seed * 0.012)
    service.kill()
    for report in bench.machine.adopt():
        assert not report.lost
    for number in range(12):
        name = f"r{number}"
        report = bench.machine.start(bench.spec(name, "/bin/sh", "-c", f"echo x >> {marks}/{name}; exit 3"))
        if report.ended_at_ms is None:
            report = bench.end(name)
        assert (report.exit_code, report.lost, report.error) == (3, False, "")
        assert (marks / name).read_text() == "x\n"


# --- what goes wrong with the files ---


@pytest.fixture
def small_disk(tmp_path: Path, bench: Bench) -> Iterator[Bench]:
    """The runs are kept on a file system of 256 kB."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        bench.directory = small / "runs"
        yield bench
        bench.close()
    finally:
        subprocess.run(["umount", str(small)], check=True)


FILL = "head -c 1000000 /dev/zero; echo full >&2;"


@root_only
def test_a_full_disk_does_not_swallow_the_result(small_disk: Bench) -> None:
    """Work that fills the disk with its output is reported with its real end: the room for that was reserved."""
    report = small_disk.shell("a", f"{FILL} exit 3")
    assert (report.exit_code, report.lost) == (3, False)
    assert small_disk.open().adopt() == [report]


@root_only
def test_a_full_disk_delays_a_start(small_disk: Bench) -> None:
    """Without room for its files a run is not executed; the error says why; later it can be started."""
    small_disk.shell("a", FILL)
    with pytest.raises(OSError, match="No space left"):
        small_disk.machine.start(small_disk.spec("b", "true"))
    known = small_disk.machine.report(small_disk.key("b"))
    assert known is None or known.started_at_ms is None
    small_disk.machine.purge(small_disk.key("a"))
    assert small_disk.run("b", "true").exit_code == 0


@root_only
def test_a_loss_is_written_down_on_a_full_disk(small_disk: Bench) -> None:
    """The room that was reserved for the result serves also for the news that it is lost."""
    small_disk.start("a", "/bin/sh", "-c", f"trap '' PIPE; {FILL} sleep 60")
    log = small_disk.machine.stdout_path(small_disk.key("a"))
    small_disk.until(lambda: log.exists() and log.stat().st_size > 100_000)
    (supervisor,) = small_disk.supervisors()
    os.kill(supervisor, signal.SIGKILL)
    report = small_disk.end("a")
    assert report.lost
    assert small_disk.open().adopt() == [report]


def test_a_supervisor_that_cannot_begin(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says before it dies is what the report says; the job was not executed and never will be."""
    broken = bench.directory.parent / "broken.py"
    broken.write_text("import sys\nsys.exit('no such luck')\n")
    bench.machine.adopt()
    monkeypatch.setattr(launch, "PROGRAM", broken)
    report = bench.run("a", "true")
    assert report.error == "it could not be started: no such luck"
    assert (report.exit_code, report.started_at_ms) == (126, None)
    monkeypatch.undo()
    assert bench.machine.start(bench.spec("a", "true")) == report


def test_a_run_waits_while_another_version_is_installed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the supervisor, or Python itself, are not there for a moment: no job fails for that."""
    bench.machine.adopt()
    monkeypatch.setattr(launch, "PROGRAM", bench.directory.parent / "gone" / "__main__.py")
    assert bench.run("a", "true").not_now == errno.EAGAIN
    monkeypatch.undo()
    monkeypatch.setattr(launch.sys, "executable", str(bench.directory.parent / "gone" / "python3"))
    with pytest.raises(BlockingIOError, match="is it being installed"):
        bench.machine.start(bench.spec("a", "true"))
    monkeypatch.undo()
    bench.ends.clear()
    assert bench.run("a", "true").exit_code == 0


DAMAGE = [b"{}", b"", b"\0" * 300, b"00000000 {}\n"]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_claim_is_told_by_the_processes(bench: Bench, damage: bytes) -> None:
    """The run goes on, is watched to its real end, and can be stopped."""
    killed_after(
        bench, "start_and_wait('a', '/bin/sh', '-c', 'sleep 1; exit 7')\nstart_and_wait('b', '/bin/sleep', '600')"
    )
    before = {}
    for name in ("a", "b"):
        directory = bench.directory / bench.key(name)
        before[name] = run_files.read(str(directory), run_files.CLAIM)
        (directory / run_files.CLAIM).write_bytes(damage)
    for name in ("a", "b"):
        claim = before[name]
        assert claim is not None
        assert adopted(bench, name).pid == claim["pid"]
    assert bench.end("a").exit_code == 7
    bench.machine.stop(bench.key("b"), 1000)
    assert bench.end("b").signal == 15


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_first_process_of_a_damaged_claim_hears_a_signal(bench: Bench, damage: bytes) -> None:
    """It is found as it is for any other end."""
    bench.start("a", "/bin/sh", "-c", "trap 'exit 7' USR1; echo ready; while :; do sleep 0.02; done")
    bench.says("a", "ready")
    claim_of(bench, "a").write_bytes(damage)
    bench.machine.signal(bench.key("a"), signal.SIGUSR1, first=True)
    assert bench.end("a").exit_code == 7


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_claim_without_a_supervisor_is_a_lost_run(bench: Bench, damage: bytes) -> None:
    """Nothing of it is left behind, and it is not executed again."""
    killed_after(bench, "start_and_wait('a', '/bin/sleep', '600')")
    directory = bench.directory / bench.key("a")
    claim = run_files.read(str(directory), run_files.CLAIM)
    assert claim is not None
    bench.until(lambda: Path(f"/proc/{claim['pid']}/cmdline").read_bytes().startswith(b"/bin/sleep"))
    os.kill(claim["supervisor"], signal.SIGKILL)
    bench.until(lambda: not kernel.alive(claim["supervisor"], claim["supervisor_ticks"]))
    (directory / run_files.CLAIM).write_bytes(damage)
    assert adopted(bench, "a").lost
    assert not kernel.alive(claim["pid"], claim["pid_ticks"])
    assert bench.machine.start(bench.spec("a", "/bin/true")).lost


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_result_is_a_lost_run(bench: Bench, damage: bytes) -> None:
    """It has ended; that how is not known any more is said, with the file."""
    killed_after(bench, "start('a', '/bin/true')")
    path = bench.directory / bench.key("a") / run_files.RESULT
    bench.until(path.exists)
    path.write_bytes(damage)
    report = adopted(bench, "a")
    assert (report.lost, report.exit_code) == (True, None)
    assert report.note == f"it ended, and how is not known: {path} is damaged"
    assert report.ended_at_ms is not None
    bench.machine.forget(bench.key("a"))


def test_a_damaged_wish_to_stop_is_one(bench: Bench) -> None:
    """A later one takes its place."""
    deaf = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"
    bench.machine.start(bench.spec("a", "/bin/sh", "-c", deaf, grace_ms=600_000))
    bench.says("a", "deaf")
    (bench.directory / bench.key("a") / run_files.STOP).write_bytes(b"{}")
    bench.machine.stop(bench.key("a"), 100)
    assert bench.end("a").signal == 9


def test_strange_things_in_the_directory_are_passed_over(bench: Bench) -> None:
    """Files, and names that are no keys, are none of the machine's business."""
    bench.machine.adopt()
    (bench.directory / "notes.txt").write_text("x")
    (bench.directory / ".hidden").mkdir()
    assert bench.machine.adopt() == []


def test_a_closed_machine_starts_nothing(bench: Bench) -> None:
    """After close work goes on and can still be stopped; nothing new is begun; closing again does nothing."""
    bench.start("a", "sleep", "60")
    machine = bench.machine
    machine.close()
    machine.close()
    with pytest.raises(RuntimeError, match="has been closed"):
        machine.start(bench.spec("b", "true"))
    bench.until(bench.processes)
    machine.stop(bench.key("a"))
    bench.until(lambda: not bench.supervisors())
    report = machine.report(bench.key("a"))
    assert report is not None
    assert report.stopped
