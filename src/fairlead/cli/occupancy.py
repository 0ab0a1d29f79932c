"""`fairlead gpus`, and the jobs on the nodes: who has what, since when, and until when at most.

Decides how it is shown. Never decides what one may see of others' jobs: the service does.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from fairlead.cli import render
from fairlead.cli.app import command, connected, list_output
from fairlead.cli.render import NONE, Column, Columns
from fairlead.client.sync import Client
from fairlead.core.model.quantities import format_bytes

if TYPE_CHECKING:
    from fairlead.wire.occupancy import Gpu, Occupant, RunningJob


def since(holder: RunningJob | None) -> str:
    """How long it has had its room."""
    if holder is None or holder.started_at_ms is None:
        return ""
    return render.duration(max(int(time.time() * 1000) - holder.started_at_ms, 0))


def until(holder: RunningJob | None) -> str:
    """When it is over at the latest."""
    if holder is None:
        return ""
    if holder.ends_at_ms is None:
        return "stands still" if holder.state == "suspended" else "no limit"
    return render.moment(holder.ends_at_ms)


def what(holder: RunningJob | None) -> str:
    """Its key and name."""
    return "" if holder is None else f"{holder.key} {holder.name}".strip()


_GPUS: Columns[Gpu] = (
    (Column("GPU", right=True), lambda gpu: str(gpu.number)),
    (Column("RESOURCE", drop=4), lambda gpu: gpu.resource),
    (Column("MODEL", least=10, drop=2), lambda gpu: gpu.model),
    (Column("MEMORY", right=True, drop=1), lambda gpu: format_bytes(gpu.memory_bytes) if gpu.memory_bytes else ""),
    (Column("USER"), lambda gpu: gpu.holder.user if gpu.holder else "free"),
    (Column("JOB", least=10), lambda gpu: what(gpu.holder)),
    (Column("QUEUE", least=8, drop=3, keep_end=True), lambda gpu: gpu.holder.queue if gpu.holder else ""),
    (Column("SINCE", right=True), lambda gpu: since(gpu.holder)),
    (Column("UNTIL"), lambda gpu: until(gpu.holder)),
    (Column("UUID", least=12, drop=5), lambda gpu: gpu.uuid),
)
_OCCUPANTS: Columns[Occupant] = (
    (Column("NODE", least=8), lambda each: each.node),
    (Column("USER"), lambda each: each.user),
    (Column("JOB", least=10), what),
    (Column("QUEUE", least=8, drop=1, keep_end=True), lambda each: each.queue),
    (Column("STATE", drop=2), lambda each: each.state),
    (Column("HAS", least=16), lambda each: render.amounts(each.resources)),
    (Column("GPUS"), lambda each: ",".join(map(str, each.gpus)) or NONE),
    (Column("SINCE", right=True), since),
    (Column("UNTIL"), until),
)


@command("gpus", examples="fairlead gpus\nfairlead gpus -o wide")
@list_output
@connected
def gpus(client: Client, output: str) -> None:
    """Show the GPUs: what each is, and who has it until when.

    SINCE is how long the job has had it, UNTIL when its time limit ends it. Parts of a GPU (MIG) are resources of their
    own: a job asks for one with --resource, such as --resource mig-1g.5gb=1.
    """
    found = list(client.gpus())
    if not found:
        print("this machine has no GPU, and none was declared (fairlead up --resource gpu=N)", file=sys.stderr)
    render.write_list(output, found, _GPUS, name="number")


def show_occupants(client: Client, output: str) -> None:
    """The jobs on the nodes."""
    render.write_list(output, client.occupants(), _OCCUPANTS, name="key")
