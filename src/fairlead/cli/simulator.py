"""sim run, sim compare: queue files on workloads, in virtual time.

Decides how the words of a command become trials, and how a journal becomes a workload. Never measures or draws:
`fairlead.sim` does, prints, and says the exit status. Invariant: the same files, options and seed give the same output.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead.cli import forecasts
from fairlead.cli.address import journal_file
from fairlead.cli.app import JsonOption, Status, command, group
from fairlead.cli.failures import wrong_usage
from fairlead.cli.values import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.scheduler import Scheduler
    from fairlead.sim.jobs import Workload
    from fairlead.sim.sources import Source
    from fairlead.sim.trials import Trial
    from fairlead.sim.workloads.recorded import Moment

WorkloadOption = Annotated[
    str,
    typer.Option(
        "--workload",
        "-w",
        "--tasks",
        metavar="WORKLOAD",
        help="A file (.csv, .jsonl, .swf, .yaml recipe), the state directory of a service, or a name: poisson, "
        "diurnal, heavy-tails, gangs, tenants.",
    ),
]
NodesOption = Annotated[
    str,
    typer.Option(
        "--nodes",
        "-n",
        metavar="NODES",
        help="A CSV file (id, then resources), words such as '10x cpu=32,memory=128Gi', or for a made-up workload "
        "how many; else those of the workload.",
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", help="For made-up workloads and faults.")]
CountOption = Annotated[
    int | None, typer.Option("--tasks-max", metavar="N", min=1, help="Made-up workloads: so many tasks.")
]
LastsOption = Annotated[str | None, typer.Option("--lasts", metavar="TIME", help="Made-up workloads: for so long.")]
LoadOption = Annotated[
    float | None,
    typer.Option("--load", metavar="PART", min=0.001, help="Made-up workloads: part of the nodes that is asked for."),
]
SinceOption = Annotated[
    str,
    typer.Option(
        "--since", metavar="TIME", help="Journal: only what waited or ran then, or came later (2026-05-01T08:00)."
    ),
]
BeforeOption = Annotated[str, typer.Option("--before", metavar="TIME", help="Journal: only what was submitted before.")]
FaultsOption = Annotated[
    str, typer.Option("--faults", metavar="CSV", help="Nodes lost and back: time (seconds), node, what (lost or back).")
]
MtbfOption = Annotated[
    str, typer.Option("--mtbf", metavar="TIME", help="Lose nodes at random: mean time between failures of each.")
]
MttrOption = Annotated[str, typer.Option("--mttr", metavar="TIME", help="Mean time until a lost node is back (1h).")]
UntilOption = Annotated[
    str, typer.Option("--until", metavar="TIME", help="Stop so long after the first job (seconds, or 12h, 7d).")
]
SkipOption = Annotated[bool, typer.Option("--skip-bad", help="Leave out bad rows and count them.")]
KeepOption = Annotated[
    bool, typer.Option("--no-resubmit", help="Work that was stopped and has no retries left is given up.")
]
ReportOption = Annotated[
    str, typer.Option("--report", metavar="FILE", help="Write a report with plots, as one HTML file.")
]
ImagesOption = Annotated[str, typer.Option("--images", metavar="DIR", help="Write the plots as SVG files.")]
DecisionsOption = Annotated[
    str, typer.Option("--decisions", metavar="FILE", help="Write every decision to this file, a line each.")
]
ConfigOption = Annotated[
    str,
    typer.Option(
        "--config", "--queues", metavar="FILE", help="A queue file; one that suits the workload if not given."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    sim = group("sim", "Try queue files on workloads, in virtual time.")
    command(
        sim,
        "run",
        examples="""
        fairlead sim run --workload heavy-tails --nodes 50 --report report.html
        fairlead sim run --config queues.yaml --workload tasks.csv --nodes '10x cpu=32,memory=128Gi'
        """,
    )(sim_run)
    command(
        sim,
        "compare",
        examples="""
        fairlead sim compare before.yaml after.yaml --workload tasks.csv --nodes nodes.csv --report report.html
        fairlead sim compare a.yaml b.yaml --workload .fairlead --since 2026-05-01
        """,
    )(sim_compare)
    command(sim, "forecast", examples=forecasts.EXAMPLES)(forecasts.sim_forecast)
    app.add_typer(sim)


def sim_run(
    workload: WorkloadOption,
    nodes: NodesOption = "",
    config: ConfigOption = "",
    seed: SeedOption = 1,
    tasks_max: CountOption = None,
    lasts: LastsOption = None,
    load: LoadOption = None,
    since: SinceOption = "",
    before: BeforeOption = "",
    faults: FaultsOption = "",
    mtbf: MtbfOption = "",
    mttr: MttrOption = "",
    until: UntilOption = "",
    skip_bad: SkipOption = False,
    no_resubmit: KeepOption = False,
    decisions: DecisionsOption = "",
    report: ReportOption = "",
    images: ImagesOption = "",
    json: JsonOption = False,
) -> Status:
    """Simulate one queue file on a workload.

    Prints totals that add up, utilisation by resource, waiting times, and a digest of all decisions. Ctrl-C stops and
    reports what happened so far.
    """
    from fairlead.sim.simulate import run

    source = _source(workload, nodes, seed, tasks_max, lasts, load, skip_bad, since, before)
    trial = _trial(Path(config).name if config else "default", config, source, faults, mtbf, mttr, until, no_resubmit)
    return run(
        trial,
        sys.stdout,
        sys.stderr,
        decisions=decisions,
        report=report,
        images=images,
        as_json=json,
    )


def sim_compare(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Queue files; the first is compared against.")],
    workload: WorkloadOption,
    nodes: NodesOption = "",
    seed: SeedOption = 1,
    tasks_max: CountOption = None,
    lasts: LastsOption = None,
    load: LoadOption = None,
    since: SinceOption = "",
    before: BeforeOption = "",
    faults: FaultsOption = "",
    mtbf: MtbfOption = "",
    mttr: MttrOption = "",
    until: UntilOption = "",
    skip_bad: SkipOption = False,
    no_resubmit: KeepOption = False,
    report: ReportOption = "",
    images: ImagesOption = "",
    csv: Annotated[str, typer.Option("--csv", metavar="FILE", help="Write every compared figure to a CSV file.")] = "",
    processes: Annotated[int, typer.Option("--processes", metavar="N", min=1, help="How many to run at a time.")] = 2,
    json: JsonOption = False,
) -> Status:
    """Simulate several queue files on the same workload and say which is better in what.

    Prints waiting times (also by queue, user, priority and size), slowdown, utilisation, fairness, evictions and lost
    work side by side, then the differences in words.
    """
    from fairlead.sim.simulate import Files, compare

    if len(files) < 2:
        raise wrong_usage("sim compare needs two queue files or more; one by itself: fairlead sim run --config FILE")
    source = _source(workload, nodes, seed, tasks_max, lasts, load, skip_bad, since, before)
    trials = [
        _trial(name, file, source, faults, mtbf, mttr, until, no_resubmit)
        for name, file in zip(_names(files), files, strict=True)
    ]
    written = Files(report=report, images=images, csv=csv)
    return compare(trials, sys.stdout, sys.stderr, files=written, processes=processes, as_json=json)


def _names(files: list[str]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    if len(set(files)) < len(files):
        raise wrong_usage("a queue file is given twice: the figures would be the same")
    for parts in range(1, max(len(Path(f).parts) for f in files) + 1):
        names = ["/".join(Path(f).parts[-parts:]) for f in files]
        if len(set(names)) == len(names):
            return names
    return files


def _source(
    workload: str,
    nodes: str,
    seed: int,
    tasks_max: int | None,
    lasts: str | None,
    load: float | None,
    skip_bad: bool,
    since: str,
    before: str,
) -> Source:
    from fairlead.sim.sources import Source

    return Source(
        workload=workload,
        nodes=nodes,
        seed=seed,
        tasks=tasks_max,
        lasts=lasts,
        load=load,
        skip_bad=skip_bad,
        since=_moment(since, "--since"),
        until=_moment(before, "--before"),
        journal=journal_workload,
    )


def _trial(
    name: str, queues: str, source: Source, faults: str, mtbf: str, mttr: str, until: str, no_resubmit: bool
) -> Trial:
    from fairlead.sim.trials import Trial

    if faults and mtbf:
        raise wrong_usage("--faults and --mtbf: give one of them")
    if mttr and not mtbf:
        raise wrong_usage("--mttr goes with --mtbf: say how often nodes are lost, too")
    return Trial(
        name=name,
        queues=queues,
        source=source,
        faults=faults,
        mtbf_ms=parse_duration(mtbf, "--mtbf") if mtbf else None,
        mttr_ms=parse_duration(mttr or "1h", "--mttr"),
        until_ms=parse_duration(until, "--until") if until else None,
        resubmit=not no_resubmit,
    )


def _moment(text: str, where: str) -> int | None:
    """A time of day in Unix milliseconds; without a zone it is local time."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise wrong_usage(f"{where}: {text!r} is no time; write 2026-05-01 or 2026-05-01T08:00") from None
    return round((at if at.tzinfo else at.astimezone()).astimezone(UTC).timestamp() * 1000)


# -- the journal ---------------------------------------------------------------------------------------------------


def journal_workload(source: Source) -> Workload:
    """What the journal in a state directory recorded, as a workload. Raises `SourceError`."""
    from fairlead.journal.codec import CodecError
    from fairlead.journal.format import JournalError
    from fairlead.sim.machines import machines
    from fairlead.sim.sources import SourceError
    from fairlead.sim.workloads.recorded import NothingRecorded, recorded

    file = journal_file(Path(source.workload))
    nodes = machines(source.nodes) if source.nodes else ()
    try:
        state = _state_at_its_begin(file)
        return recorded(_moments(file), str(source.workload), source.since, source.until, nodes, state)
    except (JournalError, CodecError, NothingRecorded) as e:
        raise SourceError(str(e)) from e


def _state_at_its_begin(file: Path) -> Scheduler | None:
    """What there was before the first record of a journal whose older part was given up; None if it is whole."""
    from fairlead.journal.reader import Reader
    from fairlead.journal.replay import scheduler_state
    from fairlead.scheduler import Scheduler

    with Reader(file) as reader:
        snapshot = reader.snapshot(reader.first_seq - 1) if reader.first_seq > 1 else None
    return Scheduler.load(dict(scheduler_state(snapshot))) if snapshot is not None else None


def _moments(file: Path) -> Iterator[Moment]:
    from fairlead.journal.codec import decode_decisions, decode_event
    from fairlead.journal.format import EVENT, SCHEDULE
    from fairlead.journal.reader import Reader

    with Reader(file) as reader:
        for record in reader.records(reader.first_seq):
            if record.kind in (EVENT, SCHEDULE):
                event = decode_event(record.payload) if record.kind == EVENT else None
                yield record.at_ms, event, decode_decisions(record.outcome) if record.outcome else ()
