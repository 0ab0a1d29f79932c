"""What reads, and an input of any size for each: `benchmarks.linear` measures them, and a test counts their work.

Decides the inputs: of one kind of thing N, as large as N says. Never measures.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from fairlead.client.http import Answer, EventReader
from fairlead.config import check_text, load_text
from fairlead.core.model.events import AddAsks
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import DEFAULT_PARTITION, AskSpec, NodeSpec
from fairlead.journal import codec
from fairlead.kubernetes import objects
from fairlead.kubernetes.translate import pods
from fairlead.local import placing
from fairlead.local.callers import Caller, Rights
from fairlead.local.supervisor import frames
from fairlead.runtime import Refusal
from fairlead.scheduler import Scheduler
from fairlead.service.http.errors import read_otherwise
from fairlead.service.jobs import spec_of
from fairlead.sim.scenario import run_steps
from fairlead.sim.steps import read_scenarios
from fairlead.sim.workloads.swf import read_log, swf
from fairlead.sim.workloads.table import read_table
from fairlead.wire import arrays
from fairlead.wire.jobs import Submission

CALLER = Caller("ann", 1000, groups=("staff",))
Read = Callable[[], object]
QUEUES = """partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
"""


@cache
def _folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="fairlead-linear-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _file(name: str, text: str) -> str:
    path = _folder() / name
    path.write_text(text)
    return str(path)


def _queues(n: int) -> str:
    return QUEUES + "".join(f"          - {{name: q{i}, resources: {{max: {{vcore: 2}}}}}}\n" for i in range(n))


def queue_file(n: int) -> Read:
    """N queues."""
    text = _queues(n)
    return lambda: load_text(text)


def queue_file_with_mistakes(n: int) -> Read:
    """N queues with a mistake in each."""
    text = _queues(n).replace("vcore: 2", "vcore: -2")
    return lambda: check_text(text)


def queue_file_with_limits(n: int) -> Read:
    """N limits of one queue."""
    limits = "".join(f"          - {{limit: l{i}, users: [u{i}], maxapplications: 3}}\n" for i in range(n))
    text = QUEUES.replace("        queues:", f"        limits:\n{limits}        queues:") + "          - name: a\n"
    return lambda: load_text(text)


def _submission(n: int) -> bytes:
    job = {"command": ["sh", "-c", "true"], "cwd": "/", "env": {"A": "b"}, "resources": {"cpu": 0.5}}
    return json.dumps({"jobs": [job] * n}).encode()


def submission(n: int) -> Read:
    """N jobs of one request, as they are read, checked and placed."""
    raw, scheduler = _submission(n), Scheduler(load_text(_queues(3)))

    def read() -> object:
        drafts = msgspec.json.decode(raw, type=Submission).jobs
        specs = [spec_of(draft, CALLER, "/") for draft in drafts]
        with contextlib.suppress(Refusal):
            placing.plan(scheduler, specs, Rights(CALLER, scheduler))
        return specs

    return read


def body_with_a_mistake(n: int) -> Read:
    """N jobs of one request, the last with a mistake, whose place is said."""
    raw = _submission(n)[:-2] + b', {"command": 3}]}'

    def read() -> None:
        try:
            msgspec.json.decode(raw, type=Submission)
        except msgspec.DecodeError as error:
            with contextlib.suppress(Refusal):
                read_otherwise(raw, Submission, error)

    return read


def indices(n: int) -> Read:
    """N indices of an array, each by itself, and said in short."""
    text = ",".join(str(2 * i) for i in range(n))
    return lambda: arrays.in_short(arrays.parse_indices.__wrapped__(text))


def answer(n: int) -> Read:
    """An error in N pieces."""
    head = b"HTTP/1.1 422 Bad\r\nContent-Length: %d\r\n\r\n" % (n * 100)

    def read() -> None:
        reading = Answer()
        reading.feed(head)
        for _ in range(n):
            reading.feed(b"x" * 100)

    return read


def one_long_event(n: int) -> Read:
    """An event in N pieces."""

    def read() -> None:
        reading = EventReader()
        list(reading.feed(b"data: "))
        for _ in range(n):
            list(reading.feed(b"x" * 20))
        list(reading.feed(b"\n\n"))

    return read


def many_events(n: int) -> Read:
    """N events in one piece."""
    content = b'id: 1.0\nevent: started\ndata: {"a":1}\n\n' * n
    return lambda: list(EventReader().feed(content))


def pieces_of_a_terminal(n: int) -> Read:
    """N of them at once."""
    content = frames.piece(frames.INPUT, b"x") * n
    return lambda: frames.Pieces().feed(content)


def record(n: int) -> Read:
    """A record of the journal with N asks."""
    asks = (AskSpec(application="a", key=f"k{i}", resources=Resources({"vcore": 100})) for i in range(n))
    raw = codec.encode(AddAsks(tuple(asks)))
    return lambda: codec.encode(codec.decode_event(raw))


def table(n: int) -> Read:
    """A trace with N rows."""
    rows = "".join(f"{i},10,1,root.q{i % 7},u{i % 9}\n" for i in range(n))
    path = _file("t.csv", f"time,run,resources.vcore,queue,user\n{rows}")
    return lambda: list(read_table(path, NODES, []).jobs)


def table_with_mistakes(n: int) -> Read:
    """A trace with N rows, and a mistake in each but one."""
    path = _file("m.csv", "time,run,resources.vcore\n1,2,3\n" + "x,2,3\n" * n)
    return lambda: list(read_table(path, NODES, []).jobs)


def log_of_a_machine(n: int) -> Read:
    """A log in the Standard Workload Format with N jobs."""
    rows = "".join(f"{i} {i} 5 100 4 -1 -1 4 200 -1 1 {i % 9} 1 -1 {i % 5} -1 -1 -1\n" for i in range(1, n + 1))
    path = _file("l.swf", f"; MaxProcs: 16\n{rows}")
    return lambda: list(swf(read_log(path), NODES).jobs)


def scenario(n: int) -> Read:
    """A scenario with N asks, of which none fits."""
    steps: list[Any] = [
        {"op": "node", "id": "n", "resources": {"vcore": 1}},
        {"op": "app", "id": "x", "queue": "root.q0"},
    ]
    steps += [{"op": "ask", "app": "x", "key": f"k{i}", "resources": {"vcore": 600}} for i in range(n)]
    line = json.dumps({"name": "s", "config": _queues(2), "steps": [*steps, {"op": "schedule", "steps": 5}]}).encode()
    return lambda: [run_steps(each) for each in read_scenarios(iter([line]), "s")]


def pod(n: int) -> Read:
    """A pod with N containers, labels, terms and tolerations."""
    term = {"matchExpressions": [{"key": "z", "operator": "In", "values": ["x"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term] * n}}
    needs = {"requests": {"cpu": "1", "memory": "1Gi"}}
    spec = {
        "containers": [{"name": f"c{i}", "resources": needs, "ports": [{"hostPort": i + 1}]} for i in range(n)],
        "tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(n)],
        "affinity": {"nodeAffinity": required},
    }
    labels = {f"l{i}": "x" for i in range(n)}
    raw = json.dumps({"metadata": {"name": "p", "namespace": "d", "uid": "u", "labels": labels}, "spec": spec}).encode()
    return lambda: pods.ask_of(msgspec.json.decode(raw, type=objects.Pod), lambda _: (), {})


NODES = (NodeSpec(id="n", capacity=Resources({"vcore": 8000, "memory": 2**35}), partition=DEFAULT_PARTITION),)
READERS: dict[str, tuple[Callable[[int], Read], int]] = {
    "queue file, queues": (queue_file, 200),
    "queue file, a mistake in each queue": (queue_file_with_mistakes, 200),
    "queue file, limits": (queue_file_with_limits, 200),
    "submission": (submission, 1000),
    "body with a mistake at its end": (body_with_a_mistake, 2000),
    "indices of an array": (indices, 5000),
    "answer in pieces": (answer, 2000),
    "event in pieces": (one_long_event, 2000),
    "events in one piece": (many_events, 2000),
    "pieces of a terminal": (pieces_of_a_terminal, 5000),
    "record of the journal": (record, 1000),
    "table": (table, 1000),
    "table, a mistake in each row": (table_with_mistakes, 1000),
    "log of a machine": (log_of_a_machine, 1000),
    "scenario": (scenario, 200),
    "pod": (pod, 200),
}
"""By name: what makes an input and reads it, and how large that is at first."""
