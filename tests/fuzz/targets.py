"""What is fuzzed: each function takes bytes, and raises only what is a fault.

What a reader says of what it cannot use is no fault: those exceptions are named here, and are the readers' own. Any
other exception is one, as is what takes too long or too much memory (`run`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from fairlead.client.address import Address
from fairlead.client.errors import ClientError
from fairlead.client.http import Answer, CutShort, EventReader, decoded
from fairlead.config import ERROR, ConfigurationError, check_text, load_text
from fairlead.config.load import not_yet
from fairlead.config.show import as_yaml
from fairlead.core.model.events import Event
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import NodeSpec
from fairlead.journal import codec
from fairlead.journal.codec import CodecError
from fairlead.kubernetes import objects
from fairlead.kubernetes.admission import pods as admission
from fairlead.kubernetes.admission import review
from fairlead.kubernetes.pod_reader import UNREADABLE
from fairlead.kubernetes.translate import cluster as translate_cluster
from fairlead.kubernetes.translate import pods as translate_pods
from fairlead.local.callers import Caller
from fairlead.local.supervisor import frames
from fairlead.runtime import Refusal
from fairlead.service.http.errors import read_otherwise
from fairlead.service.jobs import spec_of
from fairlead.sim.rows import TraceError
from fairlead.sim.scenario import run_steps
from fairlead.sim.steps import ScenarioError, read_scenarios
from fairlead.sim.workloads.swf import header_nodes, read_log, swf
from fairlead.sim.workloads.table import read_table
from fairlead.wire import arrays, cluster, configuration, declarations, fields, jobs, orders, questions, windows


def require(true: object, what: str) -> None:
    if not true:
        raise AssertionError(what)


CALLER = Caller("ann", 1000, groups=("staff",))
NODES = (NodeSpec(id="n", capacity=Resources({"vcore": 8000, "memory": 2**35, "gpu": 4})),)
MODULES = (cluster, configuration, declarations, jobs, orders, questions, windows)


@cache
def bodies() -> Sequence[type[Any]]:
    """The shapes of all bodies that the API reads, by name."""
    found = {each for module in MODULES for each in vars(module).values() if isinstance(each, type)}
    return sorted((each for each in found if issubclass(each, fields.Request)), key=lambda each: each.__name__)


@cache
def folder() -> Path:
    """Where what is read from files is put: in memory, where the machine has such a place."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    made = Path(tempfile.mkdtemp(prefix="fairlead-fuzz-", dir=memory))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def queue_file(data: bytes) -> None:
    """A queue file is used, or refused with places; what is used can be shown."""
    text = data.decode("utf-8", "replace")
    problems = check_text(text)
    assert all(p.line >= 1 and p.column >= 1 and p.message for p in problems)
    try:
        spec = load_text(text)
    except ConfigurationError as error:
        require(list(error.problems) == problems, "check_text and load_text differ")
        return
    assert not [p for p in problems if p.severity == ERROR]
    assert as_yaml(spec)
    assert all(p.message.startswith("not yet: ") for p in not_yet(spec))


def api(data: bytes) -> None:
    """A body of the API becomes its shape, or a sentence; the first byte says of which request."""
    if not data:
        return
    shape, raw = bodies()[data[0] % len(bodies())], data[1:]
    try:
        try:
            body = msgspec.json.decode(raw, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            body = read_otherwise(raw, shape, error)
        again = msgspec.json.encode(body)
        for draft in body.jobs if isinstance(body, jobs.Submission) else ():
            spec = spec_of(draft, CALLER, "/")
            assert codec.decode(codec.encode(spec), object) == spec
    except Refusal as refusal:
        require(refusal.message, "a refusal without a word")
        return
    assert msgspec.json.encode(msgspec.json.decode(again, type=shape)) == again


def wire(data: bytes) -> None:
    """What a client reads: an answer in pieces, events, pieces of a terminal, indices of an array."""
    answer, reader, pieces, address = Answer(), EventReader(), frames.Pieces(), Address(socket="/s")
    step = max(1, data[0] if data else 1)
    parts = [data[at : at + step] for at in range(1, len(data), step)]
    with contextlib.suppress(ClientError, CutShort):
        for part in parts:
            for _ in reader.feed(answer.feed(part)):
                pass
        answer.check(address)
    with contextlib.suppress(ClientError):
        decoded(data[1:], jobs.JobPage, address)
    whole = [event for part in parts for event in reader.feed(part)]
    assert all(isinstance(event.type, str) for event in whole)
    with contextlib.suppress(frames.Garbled):
        for part in parts:
            for letter, content in pieces.feed(part):
                if letter == frames.SIZE:
                    frames.read_size(content)
    text = data[1:200].decode("latin-1")
    with contextlib.suppress(ValueError):
        indices = arrays.parse_indices(text)
        assert arrays.parse_indices(arrays.in_short(indices)) == indices
    with contextlib.suppress(ValueError):
        arrays.parse(text)


def journal(data: bytes) -> None:
    """The payload of a record is what was written, or damaged; what is read is written as the same again."""
    for read in (
        codec.decode_event,
        codec.decode_decisions,
        codec.decode_plain,
        codec.decode_limit,
        lambda raw: codec.decode(raw, object),
    ):
        with contextlib.suppress(CodecError):
            value = read(data)
            if isinstance(value, Event):
                assert codec.decode_event(codec.encode(value)) == value


def trace(data: bytes) -> None:
    """A recorded workload as a table or a log: jobs, or a sentence with file and line."""
    if not data:
        return
    path = folder() / ("t.csv", "t.jsonl", "t.swf")[data[0] % 3]
    path.write_bytes(data[1:])
    with contextlib.suppress(TraceError):
        if path.suffix == ".swf":
            log = read_log(str(path))
            header_nodes(log)
            jobs_of = swf(log, NODES).jobs
        else:
            jobs_of = read_table(str(path), NODES, []).jobs
        for number, _ in enumerate(jobs_of):
            if number >= 100:
                break


def scenario(data: bytes) -> None:
    """A scenario runs to its end, or says which step makes no sense."""
    try:
        for each in read_scenarios(iter(data.splitlines()), "s"):
            run_steps(each)
    except ScenarioError as error:
        require(str(error), "an error without a word")


_POD, _NODE = msgspec.json.Decoder(objects.Pod), msgspec.json.Decoder(objects.Node)
_BUDGET, _CLASS = msgspec.json.Decoder(objects.PodDisruptionBudget), msgspec.json.Decoder(objects.PriorityClass)
_RULES = admission.AdmissionRules(trusted_users=("*op*",))


def kubernetes(data: bytes) -> None:
    """An object of the API server, or a review of one: the core's words, or what about it cannot be read."""
    unreadable = (*UNREADABLE, msgspec.DecodeError, UnicodeDecodeError)
    with contextlib.suppress(*unreadable):
        pod = _POD.decode(data)
        translate_pods.standing(pod, "fairlead")
        with contextlib.suppress(*unreadable):
            translate_pods.application_of(pod, {"yunikorn.apache.org/queue": "root.a"})
        with contextlib.suppress(*unreadable):
            translate_pods.ask_of(pod, lambda _: (), {})
        translate_pods.foreign_ask(pod, lambda _: ())
    for decoder, read in (
        (_NODE, translate_cluster.node_of),
        (_BUDGET, translate_cluster.budget_of),
        (_CLASS, translate_cluster.class_of),
        (_CLASS, translate_cluster.min_runtime_ms),
    ):
        with contextlib.suppress(*unreadable):
            read(decoder.decode(data))
    with contextlib.suppress(review.UnreadableReview):
        question = review.question_of(data)
        verdict = admission.review(question, _RULES, {})
        assert msgspec.json.decode(review.answer_to(question, verdict))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "queue-file": queue_file,
    "api": api,
    "wire": wire,
    "journal": journal,
    "trace": trace,
    "scenario": scenario,
    "kubernetes": kubernetes,
}
