"""Work as processes on this machine, under supervisors that outlive the service.

Decides which devices and cores a run gets and whether a run may still be executed. Never decides who runs. Invariants:
a run is executed at most once, in this process or any other, however often it is started and whenever anybody is
killed; its end is told exactly once to a process that started or adopted it; a device belongs to one run until nothing
of that run is left.

Safe to be called from any thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fairlead.local import devices, launch, orphans, runs
from fairlead.local.devices import read_hierarchies
from fairlead.local.disk import Disk
from fairlead.local.gpus import chosen, counted, found_gpus, numbered
from fairlead.local.live_runs import LiveRun, load_by_core
from fairlead.local.means import Means, probe
from fairlead.local.runs import Capability, RunReport, RunSpec, RunUsage
from fairlead.local.supervisor import cgroups, kernel, run_files, tree
from fairlead.local.supervisor.claims import kept_from
from fairlead.local.watch import ExitWatch, sentence_of

log = logging.getLogger("fairlead.local")

MOST_PROCESSES = 4096
"""Processes and threads of a run that does not say how many it needs."""


class Machine:
    """The runs of one directory."""

    def __init__(
        self,
        runs_dir: Path,
        *,
        on_end: Callable[[RunReport], None],
        on_begin: Callable[[RunReport], None] | None = None,
        gpus: Sequence[int] | None = None,
        capacity: Mapping[str, int] | None = None,
        processes: int = MOST_PROCESSES,
        means: Means | None = None,
        disk: Disk | None = None,
    ) -> None:
        """`on_end` is called from the machine's own thread (or by `stop`), once for each run whose end this process is
        the first to see, unless `start` or `adopt` has returned that end already; `on_begin` when a started run has its
        pid. A run whose supervisor the machine kept from beginning is told to `on_end` too, with `not_now`: it was not
        executed, and may be started again.

        `gpus`: device numbers, instead of those found. `capacity`: `vcore` (thousandths), `memory` (bytes) and other
        amounts, instead of those found. `processes`: the bound of a run that names none; 0: no bound. `means`: instead
        of those found; `Means()` leaves all control groups alone. `disk`: nothing starts while there is too little room
        on it; None: however little there is. Raises OSError if the directory cannot be made, and
        RuntimeError on a system other than Linux.
        """
        if not sys.platform.startswith("linux"):
            raise RuntimeError(f"work can be run on Linux only, this is {sys.platform}")
        self._runs = Path(os.path.abspath(runs_dir))
        launch.make_runs_directory(self._runs, parents=True)
        self._on_end, self._on_begin = on_end, on_begin
        hierarchies = read_hierarchies()
        self._means = probe(hierarchies) if means is None else means
        self.gpus = found_gpus() if gpus is None else numbered(gpus)
        found = {**devices.detect_capacity(hierarchies), **counted(self.gpus)}
        self._found_vcore = found["vcore"]
        self._capacity = {**found, **(capacity or {})}
        self._processes = processes
        self._disk = disk
        self._lock = threading.RLock()
        self._live: dict[str, LiveRun] = {}
        self._looked = False
        self._closed = False
        self._watch = ExitWatch(self._begun, self._exited)

    # --- what the machine is -----------------------------------------------------------------------------------------

    def capabilities(self) -> list[Capability]:
        """What is enforced here and what is not."""
        return self._means.capabilities(len(self.gpus))

    def capacity(self) -> dict[str, int]:
        """What there is to give out: `vcore` in thousandths, `memory` in bytes, `gpu`, and what was declared."""
        return dict(self._capacity)

    # --- orders ------------------------------------------------------------------------------------------------------

    def start(self, run: RunSpec) -> RunReport:
        """Execute a run, unless it was ever executed before; returns at once with what is known of it.

        What can never be executed here is refused: the report has ended, with `error`. Raises OSError if the machine
        cannot do it now (no room on the disk, no more processes): the run was not executed and may be started again.
        Raises ValueError for an impossible key, RuntimeError after `close`.
        """
        directory = runs.directory_of(self._runs, run.key)
        with self._lock:
            if self._closed:
                raise RuntimeError("the machine has been closed; it starts nothing more")
            if run.key in self._live:
                return self._now(run.key, directory)
            self._look_once()
            if (known := self._known(run.key, directory)) is not None:
                return known
            if self._disk is not None:
                self._disk.require_room()
            try:
                run = launch.with_groups(run)
                launch.check(run)
                share = self._share(run)
                bounds = {"most_vcore": self._found_vcore, "processes": self._processes}
                record = launch.record_of(run, share, self._means, owned=self.gpus, **bounds)
            except launch.Refused as refusal:
                return self.give_up(run.key, str(refusal))
            launch.write_spec(directory, run, record)
            return self._launch(run, directory, share)

    def _launch(self, run: RunSpec, directory: Path, share: launch.Share) -> RunReport:
        pid, words = launch.start_supervisor(directory)
        live = LiveRun(pid, 0, run_files.now_ms(), share.gpus, share.cpus, run.vcore)
        self._live[run.key] = live
        # It is our child and not waited for before the watch has seen its end: it keeps its pid until then.
        live.supervisor_ticks = self._watch.add_child(run.key, pid, words)
        return RunReport(key=run.key, started_at_ms=live.launched_at_ms, gpus=share.gpus)

    def stop(self, key: str, grace_ms: int | None = None) -> None:
        """SIGTERM to the whole tree now, SIGKILL after the grace period (None: that of the run). Returns at once.

        It goes on even if this process dies. A second call can shorten the grace period. A run that was never executed
        never will be. Nothing happens to a run that has ended. Raises KeyError for an unknown run, OSError (disk full).
        """
        directory = runs.directory_of(self._runs, key)
        with self._lock:
            live = self._live.get(key)
            if not directory.is_dir():
                if live is None:
                    raise KeyError(f"there is no run {key!r}")
                live.end()  # Somebody removed its directory.
                return
            if runs.ended_of(key, directory) is not None:
                return
            if grace_ms is None:
                spec = runs.spec_of(directory)
                grace_ms = spec["run"]["grace_ms"] if spec is not None else 0
            runs.wish_to_end(directory, grace_ms)
            if live is not None:
                live.wake()
            elif (known := self._known(key, directory)) is None:
                self._settle(key, directory, {"stopped": True, "begun": False})
            elif known.is_over:  # Nobody watched it, so nobody else tells of it.
                self._on_end(known)

    def give_up(self, key: str, why: str) -> RunReport:
        """A run that was never executed never will be: it has failed, for this reason. Raises OSError (disk full)."""
        directory = runs.directory_of(self._runs, key)
        with self._lock:
            directory.mkdir(mode=0o700, exist_ok=True)
            log.warning("run %s was never executed: %s", key, why)
            return self._settle(key, directory, {"error": why, "exit_code": 126, "begun": False})

    def go_on(self, key: str, time_limit_ms: int | None, *, suspended: bool = False) -> None:
        """Let a run have this time limit from its beginning on (None: none), and stand still or go on, at once.

        Time for which it stands still does not count. The supervisor obeys even if this process dies. What has ended or
        is unknown is left alone. Raises OSError (disk full).
        """
        directory = runs.directory_of(self._runs, key)
        with self._lock:
            if not directory.is_dir() or runs.ended_of(key, directory) is not None:
                return
            runs.wish_to_go_on(directory, time_limit_ms, suspended=suspended)
            live = self._live.get(key)
            if live is not None:
                live.wake()

    def signal(self, key: str, number: int, *, first: bool = False) -> None:
        """Send a signal to every process of a run that runs, or to its `first` alone."""
        claim = self._claim_of_live(key)
        if claim is not None and not first:
            tree.tell(claim["supervisor"], claim["groups"], number)
        elif claim is not None and claim["pid"] is not None:  # None: the claim is damaged, and the first has ended.
            kernel.send(claim["pid"], claim["pid_ticks"], number)

    def adopt(self) -> list[RunReport]:
        """Every run of the directory, sorted by key: those that run are watched from now on, those that ended are told
        with how they ended, those that are lost have been cleared away. Forgotten ones are left out.
        """
        with self._lock:
            self._looked = True
            return [report for key in self._keys() if (report := self._found(key)) is not None]

    # --- questions ---------------------------------------------------------------------------------------------------

    def report(self, key: str) -> RunReport | None:
        """What is known of a run now; None if there is no such run."""
        directory = runs.directory_of(self._runs, key)
        with self._lock:
            return self._now(key, directory) if directory.is_dir() or key in self._live else None

    def usage(self, key: str) -> RunUsage | None:
        """CPU time so far and memory now of a run that runs; None if it does not."""
        if (claim := self._claim_of_live(key)) is None:
            return None
        whole = claim["supervisor"], claim["groups"]
        return RunUsage(cpu_ms=tree.cpu_ms(*whole), memory_bytes=tree.memory_bytes(*whole))

    def _claim_of_live(self, key: str) -> run_files.Record | None:
        directory = runs.directory_of(self._runs, key)
        with self._lock:
            return runs.claim_of(directory) if key in self._live else None

    def stdout_path(self, key: str) -> Path:
        """Where its standard output goes; the file is there soon after the run has begun."""
        return runs.directory_of(self._runs, key) / run_files.STDOUT

    def stderr_path(self, key: str) -> Path:
        """Where its standard error goes."""
        return runs.directory_of(self._runs, key) / run_files.STDERR

    # --- housekeeping ------------------------------------------------------------------------------------------------

    def forget(self, key: str) -> None:
        """Remove what was needed to execute an ended run. Its logs stay, and so does the fact that it was executed.

        Raises ValueError if it has not ended. Nothing happens to an unknown run.
        """
        directory = runs.directory_of(self._runs, key)
        with self._lock:
            self._must_have_ended(key, directory)
            if not directory.is_dir():
                return
            if (result := runs.whole_result(directory)) is not None:
                run_files.write(str(directory), run_files.FORGOTTEN, result)
            runs.clear_up(directory)

    def purge(self, key: str) -> None:
        """Remove everything of an ended run, its logs too. Its key must not be used again: nobody would know any more.

        Raises ValueError if it has not ended. Nothing happens to an unknown run.
        """
        directory = runs.directory_of(self._runs, key)
        with self._lock:
            if not directory.is_dir():
                return
            if left := list(directory.iterdir()):
                self._must_have_ended(key, directory)
            # What says that it has ended goes last: whoever is killed on the way can do the rest at the next start.
            for each in sorted(left, key=lambda each: each.name in (run_files.RESULT, run_files.FORGOTTEN)):
                runs.remove(each)
            directory.rmdir()

    def close(self) -> None:
        """Stop watching and starting. Work goes on. A second call does nothing."""
        with self._lock:
            self._closed = True
        self._watch.close()

    def _must_have_ended(self, key: str, directory: Path) -> None:
        if key in self._live or (directory.is_dir() and runs.ended_of(key, directory) is None):
            raise ValueError(f"run {key!r} has not ended; stop it first")

    # --- the books ---------------------------------------------------------------------------------------------------

    def _keys(self) -> list[str]:
        return sorted(each.name for each in self._runs.iterdir() if runs.KEY.fullmatch(each.name) and each.is_dir())

    def _look_once(self) -> None:
        """Find out which devices are in use, if nobody has asked yet what there is."""
        if not self._looked:
            self.adopt()

    def _found(self, key: str) -> RunReport | None:
        directory = self._runs / key
        if runs.is_forgotten(directory):
            with contextlib.suppress(OSError):
                runs.go_on_clearing_up(directory)
            return None
        if key in self._live:
            return self._now(key, directory)
        return self._known(key, directory) or RunReport(key=key)

    def _now(self, key: str, directory: Path) -> RunReport:
        if (ended := runs.ended_of(key, directory)) is not None:
            return ended
        claim = runs.claim_of(directory)
        if claim is not None:
            return runs.running_of(key, claim)
        live = self._live.get(key)
        return RunReport(key=key, started_at_ms=live.launched_at_ms, gpus=live.gpus) if live else RunReport(key=key)

    def _known(self, key: str, directory: Path) -> RunReport | None:
        """What became of a run that this process does not watch; one that runs is watched from now on.

        None: it was never executed.
        """
        if (ended := runs.ended_of(key, directory)) is not None:
            return ended
        claim = runs.claim_of(directory)
        if claim is None:
            return None
        if runs.owner_alive(claim) and self._watch.add(key, claim["supervisor"], claim["supervisor_ticks"]):
            who = claim["supervisor"], claim["supervisor_ticks"], claim["started_at_ms"]
            live = LiveRun(*who, tuple(claim["gpus"]), tuple(claim["cpus"]), runs.vcore_of(directory))
            self._live[key] = live
            if run_files.exists(str(directory), run_files.STOP):
                # What wrote it may have been killed before it could say so.
                live.wake()
            return runs.running_of(key, claim)
        return runs.ended_of(key, directory) or self._bury(key, directory, claim, "")

    def _share(self, run: RunSpec) -> launch.Share:
        used = [number for live in self._live.values() for number in live.gpus]
        try:
            gpus = chosen({"gpu": run.gpus, **run.gpu_parts}, self.gpus, used)
        except ValueError as problem:
            raise launch.Refused(str(problem)) from None
        allowed = os.sched_getaffinity(0)
        if self._means.bounds("cpu") or not 0 < run.vcore <= (len(allowed) - 1) * 1000:
            return launch.Share(gpus=gpus)
        return launch.Share(gpus=gpus, cpus=devices.choose_cpus(run.vcore, allowed, load_by_core(self._live.values())))

    # --- ends --------------------------------------------------------------------------------------------------------

    def _begun(self, key: str) -> None:
        if self._on_begin is not None and (claim := self._claim_of_live(key)) is not None:
            self._on_begin(runs.running_of(key, claim))

    def _exited(self, key: str, words: str) -> None:
        """A supervisor is gone: find out what became of its run."""
        directory = self._runs / key
        with self._lock:
            live = self._live.pop(key, None)
            try:
                report = self._end_of(key, directory, live, words)
            except Exception:
                if live is not None:
                    self._live[key] = live
                raise
        if report is not None:
            try:
                self._on_end(report)
            except Exception as fault:
                log.error("the end of run %s could not be handed on: %s", key, fault, exc_info=fault)

    def _end_of(self, key: str, directory: Path, live: LiveRun | None, words: str) -> RunReport | None:
        if live is not None and not directory.is_dir():
            return runs.removed(key, directory, live.launched_at_ms)
        if (known := runs.ended_of(key, directory)) is not None:
            return known
        claim = runs.claim_of(directory)
        if claim is None:
            return self._not_begun(key, directory, words)
        if live is not None and claim["supervisor"] != live.supervisor:
            # Another supervisor, sent by a process before this one, was faster. Its run is the run.
            report = self._known(key, directory)
            return None if report is None or report.ended_at_ms is None else report
        return self._bury(key, directory, claim, words)

    def _not_begun(self, key: str, directory: Path, words: str) -> RunReport:
        """A run that no supervisor has taken, or one has given back."""
        if run_files.exists(str(directory), run_files.STOP):
            return self._settle(key, directory, {"stopped": True, "begun": False})
        if (problem := kept_from(words)) is not None and problem.errno is not None:
            return RunReport(key=key, not_now=problem.errno, error=problem.strerror or "")
        return self.give_up(key, f"it could not be started: {sentence_of(words)}")

    def _bury(self, key: str, directory: Path, claim: run_files.Record, words: str) -> RunReport:
        """A run without a supervisor and without a result: kill what is left of it and write down that it is lost."""
        note = "its supervisor was killed, and with it went the knowledge of how it ended"
        others = {live.supervisor for live in self._live.values()}
        if claim["boot"] != kernel.boot_id():
            note = "the machine was restarted while it ran"
        elif not (tree.end_orphans(claim["marker"], claim["groups"]) and orphans.end(others)):
            note += "; some of its processes could not be killed"
        if words:
            note += f" ({sentence_of(words)})"
        cgroups.remove(claim["groups"])
        log.warning("run %s is lost: %s", key, note)
        return self._settle(key, directory, {"lost": True, "note": note})

    def _settle(self, key: str, directory: Path, result: run_files.Record) -> RunReport:
        """Write down an end that no supervisor will write. Raises OSError."""
        place = str(directory)
        result = {**result, "ended_at_ms": run_files.now_ms()}
        if not run_files.exists(place, run_files.CLAIM):
            nobody = {"boot": "", "supervisor": 0, "supervisor_ticks": 0, "marker": "", "cpus": [], "groups": []}
            if not run_files.claim(place, {**nobody, "pid": None, "started_at_ms": None, "gpus": []}):
                known = self._known(key, directory)
                assert known is not None
                return known
        run_files.write_reserved(place, run_files.RESULT, result)
        ended = runs.ended_of(key, directory)
        assert ended is not None
        return ended
