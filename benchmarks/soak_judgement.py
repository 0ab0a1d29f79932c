"""Whether a soak went well: what is flat, how long others waited, what ran.

Part of `benchmarks.soak`. Decides what is good; never measures. Each judgement comes with the figures that it rests on.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.soak_users import ABUSE, QUIET, Wait

BOUND_S = 0.1
"""What others wait for at most, in 99 of 100 reads, while one user does too much; beyond what the machine takes."""
ENOUGH = 300
"""Reads of which 99 of 100 can be told; of fewer, 9 of 10 are compared: else the longest one alone would decide."""
SETTLE_S = 2.0
"""After a start, before anything is measured."""


@dataclass(slots=True)
class Sample:
    """The service at one moment."""

    at_s: float
    age_s: float
    rss_mib: float
    descriptors: int
    disk_mib: float


def thirds(samples: list[Sample], seconds: float) -> tuple[list[Sample], list[Sample], list[Sample]]:
    """The samples of the beginning, the middle and the end; of each life of the service only what is settled."""
    settled = [each for each in samples if each.age_s > SETTLE_S]
    third = seconds / 3
    first, middle, last = ([s for s in settled if n * third <= s.at_s < (n + 1) * third] for n in range(3))
    return first, middle, last


def flat(samples: list[Sample], seconds: float) -> Iterator[tuple[bool, str]]:
    """For each thing whether it stays as it is from the middle to the end, with its figures."""
    parts = thirds(samples, seconds)
    for what, unit, bound in (
        ("rss_mib", "MiB of memory", 48),
        ("descriptors", "descriptors", 24),
        ("disk_mib", "MiB on disk", 24),
    ):
        figures = [[getattr(each, what) for each in part] or [0.0] for part in parts]
        middles = [statistics.median(part) for part in figures]
        good = middles[2] <= middles[1] * 1.2 + bound / 4 and middles[2] <= middles[0] * 1.5 + bound
        said = ", ".join(
            f"{middle:.0f} (at most {max(part):.0f})" for middle, part in zip(middles, figures, strict=True)
        )
        yield good, f"{unit}: {said} in the beginning, the middle, the end"


def waits(found: list[Wait]) -> Iterator[tuple[bool, str]]:
    """How long others waited, by phase: the service's part of it is what the control did not take meanwhile, too."""
    for phase, name in ((QUIET, "on ordinary days"), (ABUSE, "while one user does too much")):
        took, alike = (
            sorted(seconds for is_control, each, seconds in found if each == phase and is_control == wanted)
            for wanted in (False, True)
        )
        if not took or not alike:
            yield False, f"no reads of others {name} were measured"
            continue
        share = 0.99 if min(len(took), len(alike)) >= ENOUGH else 0.9
        good = share_of(took, share) - share_of(alike, share) < BOUND_S
        yield good, f"{len(took)} reads of others {name}: {_told(took)}"
        yield True, f"{len(alike)} of a server that does nothing: {_told(alike)}"


def _told(took: list[float]) -> str:
    middle, nine, most = (round(share_of(took, share) * 1000) for share in (0.5, 0.9, 0.99))
    return f"median {middle} ms, p90 {nine} ms, p99 {most} ms, longest {round(took[-1] * 1000)} ms"


def p99(ordered: list[float]) -> float:
    """What 99 of 100 are below."""
    return share_of(ordered, 0.99)


def share_of(ordered: list[float], share: float) -> float:
    """What this share of them is below."""
    return ordered[int(len(ordered) * share)]


def ran_once(ledger: Path, log: Path, must_run: list[str], state: set[str]) -> Iterator[tuple[bool, str]]:
    """Whether each attempt ran once, and each job that had to run did; if not, what the service logged of it."""
    lines = ledger.read_text().split()
    twice = [line for line, count in Counter(lines).items() if count > 1]
    ran = {line.rpartition(".")[0] for line in lines}
    lost = [key for key in must_run if key not in ran and key not in state]
    yield not twice, f"{len(lines)} attempts ran{', TWICE: ' + ', '.join(twice[:9]) if twice else ', each once'}"
    yield not lost, f"{len(must_run)} jobs had to run{', NEVER RAN: ' + ', '.join(lost[:9]) if lost else ', and did'}"
    for key in lost[:9]:
        said = [
            line for line in log.read_text(errors="replace").splitlines() if f" {key}-" in line or f" {key} " in line
        ]
        yield False, f"of {key} the service logged: {' | '.join(said[:5]) or 'nothing'}"
