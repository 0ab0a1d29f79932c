"""The journal in a state directory as a workload, also of a service that runs.

Decides what is read of it: every event and decision from its first record on. What they mean as jobs decides
`recorded`. Never writes to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fairlead.journal.codec import CodecError, decode_decisions, decode_event
from fairlead.journal.format import EVENT, SCHEDULE, JournalError
from fairlead.journal.reader import Reader
from fairlead.journal.replay import scheduler_state
from fairlead.places import journal_file
from fairlead.scheduler import Scheduler
from fairlead.sim.jobs import Workload
from fairlead.sim.sources import Source, SourceError, machines
from fairlead.sim.workloads.recorded import Moment, NothingRecorded, recorded


def journal_workload(source: Source) -> Workload:
    """What the journal in a state directory recorded, as a workload. Raises `SourceError`."""
    file = journal_file(Path(source.workload))
    nodes = machines(source.nodes) if source.nodes else ()
    try:
        state = _state_at_its_begin(file)
        moments = itertools.chain(_moments(file, source.last_seq), [(source.now, None, ())] if source.now else ())
        return recorded(moments, str(source.workload), source.since, source.until, nodes, state)
    except (JournalError, CodecError, NothingRecorded) as e:
        raise SourceError(str(e)) from e


def as_it_is(source: Source) -> Source:
    """The same work whenever it is opened, also of a journal that is written on meanwhile. Raises `SourceError`."""
    if not source.is_journal:
        return source
    try:
        with Reader(journal_file(Path(source.workload))) as reader:
            return replace(source, last_seq=reader.last_seq)
    except JournalError as e:
        raise SourceError(str(e)) from e


def begins_ms(state: str) -> int:
    """When the first record of the journal in a state directory is of; 0 where there is none. Raises `JournalError`."""
    with Reader(journal_file(Path(state))) as reader:
        return next((record.at_ms for record in reader.records(reader.first_seq)), 0)


def _state_at_its_begin(file: Path) -> Scheduler | None:
    """What there was before the first record of a journal whose older part was given up; None if it is whole."""
    with Reader(file) as reader:
        snapshot = reader.snapshot(reader.first_seq - 1) if reader.first_seq > 1 else None
    return Scheduler.load(dict(scheduler_state(snapshot))) if snapshot is not None else None


def _moments(file: Path, last_seq: int | None) -> Iterator[Moment]:
    with Reader(file) as reader:
        for record in reader.records(reader.first_seq, last_seq):
            if record.kind in (EVENT, SCHEDULE):
                event = decode_event(record.payload) if record.kind == EVENT else None
                yield record.at_ms, event, decode_decisions(record.outcome) if record.outcome else ()
