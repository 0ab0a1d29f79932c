"""Which jobs a key means: one, a part of an array (`12.7`), some of them (`12.5-9`), or all (`12`).

Decides what exists for a caller, and says what is wrong with a key that means nothing. Never acts on a job. Invariant:
who may see a job may act on it; a key that names a part that is not there means nothing at all.
"""

from __future__ import annotations

import re

from fairlead.local.arrays import Array
from fairlead.local.callers import Rights
from fairlead.local.job import Job
from fairlead.local.jobs import Jobs
from fairlead.runtime import Refusal
from fairlead.wire.arrays import in_short, parse_indices, split


def visible(jobs: Jobs, rights: Rights, key: str) -> Job:
    """The one job, or part of an array, of this key, if it exists for the caller. Raises `Refusal`."""
    found = meant(jobs, rights, key)
    if len(found) == 1 and found[0].key == key:
        return found[0]
    one = found[0].key
    raise Refusal("conflict", f"{key} names {len(found)} parts of an array; name one, such as {one}", field="key")


def meant(jobs: Jobs, rights: Rights, key: str) -> list[Job]:
    """All jobs that the key means, in order: none of them is there for nobody. Raises `Refusal`."""
    job = jobs.get(key)
    if job is not None and rights.may_act(job):
        return [job]
    name, indices = split(key)
    array = jobs.arrays.get(name)
    if array is None or not rights.may_act(array.first):
        hint = part_of_slurm(key)
        if not hint and indices and name in jobs and rights.may_act(jobs.of(name)[0]):
            hint = f"; job {name} is no array"
        raise Refusal("not-found", f"there is no job {key!r}{hint}; `fairlead ls --all` shows yours")
    if not indices and "." not in key:
        return list(array.parts.values())
    return _some(array, key, indices)


def part_of_slurm(key: str) -> str:
    """How parts of an array are written here, where they are named as in Slurm, `12_7`; else nothing."""
    number = re.match(r"(\d+)[_\[]", key)
    return f"; parts of an array are written {number[1]}.7 or {number[1]}.5-9" if number else ""


def _some(array: Array, key: str, indices: str) -> list[Job]:
    try:
        wanted = parse_indices(indices)
    except ValueError as problem:
        raise Refusal("invalid", f"{key}: {problem}", field="key") from None
    missing = [index for index in wanted if index not in array.parts]
    if missing:
        has = in_short(array.parts)
        raise Refusal("not-found", f"array {array.key} has no part {in_short(missing)}; its parts are {has}")
    return [array.parts[index] for index in wanted]
