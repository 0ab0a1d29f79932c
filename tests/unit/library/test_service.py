"""The resource-manager interface: requests in, callbacks out, by hand and by itself."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from invariants.books import check_books

import fairlead
from fairlead.core.model.decisions import (
    Allocated,
    ApplicationAccepted,
    ApplicationChanged,
    AskRejected,
    Decision,
    Evict,
    NodeAccepted,
    NodeRejected,
    PriorityChanged,
    Released,
    Reserved,
)
from fairlead.core.model.reasons import NoNodeHasRoom
from fairlead.library.callbacks import AllocationResponse, ApplicationResponse, NodeResponse, calls_for
from fairlead.library.service import PAUSE_MAX_MS

ONE_QUEUE = """
partitions:
  - name: default
    preemption: {rule: priority}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: work
"""


@dataclass
class Recorder(fairlead.SilentCallbacks):
    """Keeps what it is called with; `then` is what it does on an allocation response."""

    calls: list[object] = field(default_factory=list)
    then: Callable[[AllocationResponse], None] = lambda response: None

    def update_application(self, response: ApplicationResponse) -> None:
        self.calls.append(response)

    def update_allocation(self, response: AllocationResponse) -> None:
        self.calls.append(response)
        self.then(response)

    def update_node(self, response: NodeResponse) -> None:
        self.calls.append(response)

    def send_event(self, at_ms: int, decision: Decision) -> None:
        self.calls.append((at_ms, decision))

    @property
    def allocations(self) -> list[AllocationResponse]:
        return [c for c in self.calls if isinstance(c, AllocationResponse)]

    @property
    def started(self) -> list[str]:
        return [new.key for response in self.allocations for new in response.new]


class Clock:
    """Time that a test moves; never before 1 ms."""

    def __init__(self) -> None:
        self.now_ms = 1

    def __call__(self) -> int:
        return self.now_ms


def amount(vcore: int) -> fairlead.Resources:
    return fairlead.Resources({"vcore": vcore})


def ask(key: str, vcore: int = 1000, app: str = "job", **more: object) -> fairlead.AskSpec:
    return fairlead.AskSpec(application=app, key=key, resources=amount(vcore), **more)  # type: ignore[arg-type]


@contextmanager
def one_node(
    recorder: Recorder, *, automatic: bool = False, clock: Callable[[], int] | None = None, vcore: int = 2000
) -> Iterator[fairlead.SchedulerService]:
    """A service for the manager `rm` with one queue, one node and the application `job`."""
    with fairlead.SchedulerService(automatic=automatic, clock=clock or Clock()) as service:
        service.register_resource_manager("rm", ONE_QUEUE, recorder)
        service.update_node("rm", create=[fairlead.NodeSpec(id="n", capacity=amount(vcore))])
        service.update_application("rm", new=[fairlead.ApplicationSpec(id="job", queue="root.work", user="ann")])
        yield service


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_what_is_taken_in_is_answered_before_the_call_returns() -> None:
    """Nodes and applications are accepted, each by the callback for it."""
    recorder = Recorder()
    with one_node(recorder):
        assert recorder.calls == [
            NodeResponse(accepted=(NodeAccepted("n"),)),
            ApplicationResponse(accepted=(ApplicationAccepted("job", "root.work"),)),
        ]


def test_nothing_is_placed_before_a_step() -> None:
    """By hand an ask waits until somebody steps."""
    recorder = Recorder()
    with one_node(recorder) as service:
        service.update_allocation("rm", asks=[ask("k1")])
        assert recorder.started == []
        assert service.step() == 1
        assert recorder.started == ["k1"]


def test_a_step_is_as_many_runs_as_asked() -> None:
    """Each run places one ask at most; the rest waits for the next step."""
    recorder = Recorder()
    with one_node(recorder, vcore=4000) as service:
        service.update_allocation("rm", asks=[ask(f"k{i}") for i in range(4)])
        assert [service.step(3), service.step(3), service.step(3)] == [3, 1, 0]
        assert recorder.started == ["k0", "k1", "k2", "k3"]


@pytest.mark.parametrize("half", [0.5, "500m"])
def test_half_a_core_is_five_hundred_thousandths(half: int) -> None:
    """As a fraction it would be next to nothing, and everything would fit; compiled there are no such resources."""
    with one_node(Recorder()) as service:
        with pytest.raises(TypeError, match=r"vcore counts in thousandths|int object expected"):
            service.update_allocation("rm", asks=[ask("k0"), ask("k1", half)])
        with pytest.raises(TypeError):
            service.update_node("rm", update={"n": amount(half)})
        with pytest.raises(TypeError):
            service.update_application("rm", new=[fairlead.ApplicationSpec(id="gang", placeholder_ask=amount(half))])
        assert service.step(9) == 0, "nothing of the request was taken in"


@pytest.mark.parametrize(
    "told",
    [
        {"remove": "n"},
        {"drain": "n"},
        {"undrain": "n"},
    ],
)
def test_one_id_is_no_list_of_them(told: dict[str, str]) -> None:
    """Each letter was taken for an id: of a node `n` that was right, of others nothing happened."""
    with one_node(Recorder()) as service:
        with pytest.raises(TypeError, match=r"'n': give a list of ids, such as \['n'\]"):
            service.update_node("rm", **told)
        with pytest.raises(TypeError, match="list of ids"):
            service.update_application("rm", remove="app")


def test_a_mapping_is_no_amount() -> None:
    """It is answered with what to write, not with words about unpacking."""
    with one_node(Recorder()) as service, pytest.raises(TypeError, match=r"amounts are Resources, such as"):
        service.update_node("rm", update={"n": {"vcore": 1000}})  # type: ignore[dict-item]


def test_a_step_is_for_every_resource_manager() -> None:
    """Each has books of its own: the same names do not meet."""
    recorders = [Recorder(), Recorder()]
    with one_node(recorders[0]) as service:
        service.register_resource_manager("other", ONE_QUEUE, recorders[1])
        service.update_node("other", create=[fairlead.NodeSpec(id="n", capacity=amount(1000))])
        service.update_application("other", new=[fairlead.ApplicationSpec(id="job", queue="root.work")])
        for rm_id in ("rm", "other"):
            service.update_allocation(rm_id, asks=[ask(f"{rm_id}-1"), ask(f"{rm_id}-2")])
        assert service.step(5) == 3
    assert [r.started for r in recorders] == [["rm-1", "rm-2"], ["other-1"]]


def test_an_end_is_echoed_and_makes_room() -> None:
    """What the manager stopped is released in the books, and the next ask starts there."""
    recorder = Recorder()
    with one_node(recorder, vcore=1000) as service:
        service.update_allocation("rm", asks=[ask("k1"), ask("k2")])
        service.step(9)
        service.update_allocation("rm", releases=[fairlead.Release("job", "k1", fairlead.Cause.FINISHED)])
        assert recorder.allocations[-1] == AllocationResponse(
            released=(Released("job", "k1", "n", fairlead.Cause.FINISHED),)
        )
        service.step(9)
    assert recorder.started == ["k1", "k2"]


def test_a_bad_ask_is_rejected_and_the_others_go_on() -> None:
    """A refusal comes back with its reason, beside what was taken in."""
    recorder = Recorder()
    with one_node(recorder) as service:
        service.update_allocation("rm", asks=[ask("k1", 0), ask("k2"), ask("k3", app="nobody")])
        service.step(9)
    rejected = [r for response in recorder.allocations for r in response.rejected]
    assert [(r.key, r.reason.sentence()) for r in rejected] == [
        ("k1", "allocation contains no resources"),
        ("k3", "failed to find application nobody"),
    ]
    assert recorder.started == ["k2"]


def test_eviction_is_ordered_confirmed_and_paid_for() -> None:
    """A callback may confirm at once; the preemptor starts when it has."""
    recorder = Recorder()
    with one_node(recorder, vcore=1000) as service:

        def confirm(response: AllocationResponse) -> None:
            stopped = [fairlead.Release(e.application, e.key, e.cause) for e in response.evict]
            if stopped:
                service.update_allocation("rm", releases=stopped)

        recorder.then = confirm
        service.update_allocation("rm", asks=[ask("low")])
        service.step()
        service.update_application("rm", new=[fairlead.ApplicationSpec(id="urgent", queue="root.work")])
        service.update_allocation("rm", asks=[ask("high", app="urgent", priority=10)])
        for _ in range(3):
            service.step()
    orders = [order for response in recorder.allocations for order in response.evict]
    assert [(o.key, o.on_behalf_of) for o in orders] == [("low", "urgent/high")]
    assert isinstance(orders[0], Evict)
    assert any(isinstance(c, tuple) and isinstance(c[1], Reserved) for c in recorder.calls)
    assert recorder.started == ["low", "high"]


def test_what_follows_from_a_callback_comes_after_it() -> None:
    """A callback that calls the service is not called again before it has returned."""
    order: list[str] = []
    recorder = Recorder()
    with one_node(recorder) as service:

        def stop_k1(response: AllocationResponse) -> None:
            order.append("in")
            if response.new:
                service.update_allocation("rm", releases=[fairlead.Release("job", "k1", fairlead.Cause.FINISHED)])
            order.append("out")

        recorder.then = stop_k1
        service.update_allocation("rm", asks=[ask("k1")])
        service.step()
    assert order == ["in", "out", "in", "out"]


def test_a_callback_that_fails_loses_nothing() -> None:
    """By hand the caller gets the error after everything was delivered, and the books stand."""
    recorder = Recorder()
    with one_node(recorder) as service:

        def fail(response: AllocationResponse) -> None:
            raise OSError("the machine is on fire")

        recorder.then = fail
        service.update_allocation("rm", asks=[ask("k1")])
        with pytest.raises(OSError, match="on fire") as caught:
            service.step()
        assert any("resource manager rm" in note for note in caught.value.__notes__)
        assert service.why("rm", "job", "k1") is None
        with service.books("rm") as scheduler:
            check_books(scheduler)
    assert recorder.started == ["k1"]
    assert any(isinstance(c, ApplicationResponse) and c.updated for c in recorder.calls)


def test_a_callback_that_is_broken_off_keeps_nothing_from_being_delivered() -> None:
    """As by Ctrl-C: whoever called hears of it, and what was decided comes with the next call."""

    def break_off(response: AllocationResponse) -> None:
        recorder.then = lambda response: None
        raise KeyboardInterrupt

    recorder = Recorder(then=break_off)
    with one_node(recorder) as service:
        with pytest.raises(KeyboardInterrupt):
            service.update_allocation("rm", asks=[ask("bad", app="unknown"), ask("k1")])
        service.step()
        assert recorder.started == ["k1"]
        assert service.settle(timeout_s=1)


def test_what_was_not_delivered_comes_at_the_close_at_the_latest() -> None:
    """A callback was broken off, and others were to come."""

    def break_off(response: AllocationResponse) -> None:
        raise KeyboardInterrupt

    recorder = Recorder(then=break_off)
    with one_node(recorder) as service:
        service.update_allocation("rm", asks=[ask("k1")])
        with pytest.raises(KeyboardInterrupt):
            service.step()
    assert recorder.calls[-1] == ApplicationResponse(updated=(ApplicationChanged("job", "Running", "runApplication"),))


def test_by_hand_too_a_callback_cannot_wait_for_itself() -> None:
    """It is told so at once, and does not stand still until the time is over."""

    def settle(response: AllocationResponse) -> None:
        service.settle(timeout_s=0.2)

    recorder = Recorder(then=settle)
    with one_node(recorder) as service:
        service.update_allocation("rm", asks=[ask("k1")])
        with pytest.raises(RuntimeError, match="a callback cannot wait for itself"):
            service.step()


def test_nodes_are_resized_drained_and_removed() -> None:
    """Each order about a node has its effect; one about an unknown node is refused with its name."""
    recorder = Recorder()
    with one_node(recorder, vcore=1000) as service:
        service.update_node("rm", update={"n": amount(3000)})
        service.update_allocation("rm", asks=[ask("k1"), ask("k2")])
        assert service.step() == 1
        service.update_node("rm", drain=["n"])
        assert service.step() == 0
        service.update_node("rm", undrain=["n"])
        assert service.step() == 1
        service.update_node("rm", remove=["n", "m"])
    assert [r.key for response in recorder.allocations for r in response.released] == ["k1", "k2"]
    refused = [r for c in recorder.calls if isinstance(c, NodeResponse) for r in c.rejected]
    assert [r.id for r in refused] == ["m"]
    assert isinstance(refused[0], NodeRejected)


def test_why_names_the_numbers() -> None:
    """An ask that does not fit waits for a typed reason."""
    with one_node(Recorder()) as service:
        service.update_allocation("rm", asks=[ask("k1", 2000), ask("k2", 500)])
        service.step(9)
        reason = service.why("rm", "job", "k2")
    assert reason is not None
    assert reason.code in ("cluster-full", NoNodeHasRoom.code)


def test_an_application_that_idles_completes_on_time() -> None:
    """Timers follow the given clock; a clock that goes back does no harm."""
    recorder, clock = Recorder(), Clock()
    with one_node(recorder, clock=clock) as service:
        service.update_allocation("rm", asks=[ask("k1")])
        service.step()
        service.update_allocation("rm", releases=[fairlead.Release("job", "k1", fairlead.Cause.FINISHED)])
        clock.now_ms = 0
        service.step()
        clock.now_ms = 31_000
        service.step()
    states = [u.state for c in recorder.calls if isinstance(c, ApplicationResponse) for u in c.updated]
    assert states == ["Accepted", "Running", "Completing", "Completed"]


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "request_name"),
    [
        (lambda s: s.update_application("x", remove=["a"]), "ApplicationRequest"),
        (lambda s: s.update_allocation("x", asks=[ask("k")]), "AllocationRequest"),
        (lambda s: s.update_node("x", drain=["n"]), "NodeRequest"),
        (lambda s: s.update_configuration("x", ONE_QUEUE), "ConfigurationRequest"),
        (lambda s: s.unregister_resource_manager("x"), "UnregisterRequest"),
        (lambda s: s.why("x", "a", "k"), "StateRequest"),
    ],
)
def test_an_unknown_resource_manager_is_told_so(
    call: Callable[[fairlead.SchedulerService], object], request_name: str
) -> None:
    """Every request of an id that is not registered is refused by name."""
    with fairlead.SchedulerService(automatic=False) as service, pytest.raises(fairlead.NotRegistered) as caught:
        call(service)
    assert str(caught.value) == f'received {request_name}, but RmID="x" not registered'


def test_registration_with_a_wrong_file_says_what_is_wrong() -> None:
    """The place and the problem are in the error, and the id stays free."""
    with fairlead.SchedulerService(automatic=False) as service:
        with pytest.raises(fairlead.RegistrationFailed, match=r"registration of RM failed: .*:2:") as caught:
            service.register_resource_manager("rm", "partitions:\n  - nome: default\n", Recorder())
        assert isinstance(caught.value.__cause__, fairlead.ConfigurationError)
        service.register_resource_manager("rm", ONE_QUEUE, Recorder())


@pytest.mark.parametrize("rm_id", ["", "rm"])
def test_an_id_is_neither_empty_nor_taken(rm_id: str) -> None:
    """A second registration of an id does not replace the first."""
    recorder = Recorder()
    with one_node(recorder) as service:
        with pytest.raises(fairlead.RegistrationFailed, match="registration of RM failed"):
            service.register_resource_manager(rm_id, ONE_QUEUE, Recorder())
        service.update_allocation("rm", asks=[ask("k1")])
        assert service.step() == 1
    assert recorder.started == ["k1"]


def test_an_unregistered_manager_may_come_back_empty() -> None:
    """Its books are gone; the id is free again."""
    recorder = Recorder()
    with one_node(recorder) as service:
        service.unregister_resource_manager("rm")
        service.register_resource_manager("rm", ONE_QUEUE, recorder)
        with service.books("rm") as scheduler:
            assert not scheduler.cluster.partitions["default"].applications


def test_a_refused_configuration_changes_nothing() -> None:
    """The old one goes on; a good one takes effect at once."""
    with one_node(Recorder()) as service:
        with pytest.raises(fairlead.ConfigurationRefused, match="update of configuration failed"):
            service.update_configuration("rm", "partitions: [")
        service.update_allocation("rm", asks=[ask("k1")])
        assert service.step() == 1
        service.update_configuration("rm", ONE_QUEUE + "            resources: {max: {vcore: 1}}\n")
        service.update_allocation("rm", asks=[ask("k2")])
        assert service.step() == 0
        reason = service.why("rm", "job", "k2")
        assert reason is not None
        assert reason.code == "queue-full"


def test_a_closed_service_takes_nothing_in() -> None:
    """Closing twice is no error; everything else is."""
    service = fairlead.SchedulerService(automatic=False)
    service.register_resource_manager("rm", ONE_QUEUE, Recorder())
    service.close()
    service.close()
    for call in (service.step, lambda: service.update_node("rm"), lambda: service.why("rm", "a", "k")):
        with pytest.raises(fairlead.ServiceClosed):
            call()


# -- by itself --------------------------------------------------------------------------------------------------------


def test_it_schedules_by_itself_on_a_thread_of_its_own() -> None:
    """Nobody steps; callbacks come from one other thread."""
    threads: set[threading.Thread] = set()
    recorder = Recorder(then=lambda response: threads.add(threading.current_thread()))
    with one_node(recorder, automatic=True) as service:
        service.update_allocation("rm", asks=[ask("k1"), ask("k2")])
        assert service.settle()
        assert recorder.started == ["k1", "k2"]
    assert len(threads) == 1
    assert threading.current_thread() not in threads
    assert not any(thread.is_alive() for thread in threads)


def test_it_looks_at_the_clock_without_being_told() -> None:
    """A timer fires within the longest pause, although no request comes."""
    recorder, clock, completed = Recorder(), Clock(), threading.Event()

    class Watch(Recorder):
        def update_application(self, response: ApplicationResponse) -> None:
            if any(change.state == "Completed" for change in response.updated):
                completed.set()

    recorder = Watch()
    with one_node(recorder, automatic=True, clock=clock) as service:
        service.update_allocation("rm", asks=[ask("k1")])
        service.update_allocation("rm", releases=[fairlead.Release("job", "k1", fairlead.Cause.FINISHED)])
        assert service.settle()
        clock.now_ms = 40_000
        assert completed.wait(PAUSE_MAX_MS * 100 / 1000)


def test_many_threads_may_ask_at_once() -> None:
    """Nothing is lost or delivered twice, and no two callbacks overlap."""
    inside = threading.Lock()

    def alone(response: AllocationResponse) -> None:
        assert inside.acquire(blocking=False)
        inside.release()

    recorder = Recorder(then=alone)
    with one_node(recorder, automatic=True, vcore=1_000_000) as service:

        def submit(number: int) -> None:
            for i in range(50):
                service.update_allocation("rm", asks=[ask(f"{number}-{i}")])

        threads = [threading.Thread(target=submit, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert service.settle()
    assert sorted(recorder.started) == sorted(f"{n}-{i}" for n in range(4) for i in range(50))


def test_a_failing_callback_is_logged_and_scheduling_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """In automatic mode there is no caller to raise to."""
    recorder = Recorder()

    def fail(response: AllocationResponse) -> None:
        if "k1" in [new.key for new in response.new]:
            raise OSError("no disk")

    recorder.then = fail
    with caplog.at_level(logging.ERROR), one_node(recorder, automatic=True) as service:
        service.update_allocation("rm", asks=[ask("k1")])
        service.settle()
        service.update_allocation("rm", asks=[ask("k2")])
        service.settle()
    assert recorder.started == ["k1", "k2"]
    assert "a callback of resource manager rm failed" in caplog.text


def test_steps_are_for_those_who_asked_for_them() -> None:
    """A service that schedules by itself cannot be stepped."""
    with fairlead.SchedulerService() as service, pytest.raises(RuntimeError, match="automatic=False"):
        service.step()


def test_a_callback_can_neither_wait_for_itself_nor_be_kept_by_a_close() -> None:
    """Settling inside a callback is refused; closing there works."""
    recorder = Recorder()
    refused: list[str] = []
    with one_node(recorder, automatic=True) as service:

        def act(response: AllocationResponse) -> None:
            try:
                service.settle()
            except RuntimeError as e:
                refused.append(str(e))
            service.close()

        recorder.then = act
        service.update_allocation("rm", asks=[ask("k1")])
        with pytest.raises(fairlead.ServiceClosed):
            service.settle()
    assert refused == ["a callback cannot wait for itself: return, and the rest is delivered"]


def test_a_clock_that_breaks_ends_the_service_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    """The thread does not die in silence: whoever calls next learns what broke."""
    clock = Clock()

    def broken() -> int:
        if clock.now_ms > 1:
            raise OSError("no clock")
        return 1

    with fairlead.SchedulerService(clock=broken) as service:
        clock.now_ms = 2
        for thread in threading.enumerate():
            if thread.name == "fairlead-scheduling":
                thread.join(10)
        with pytest.raises(fairlead.ServiceClosed) as caught:
            service.settle()
    assert isinstance(caught.value.__cause__, OSError)
    assert "scheduling broke off" in caplog.text


# -- small things -----------------------------------------------------------------------------------------------------


def test_neighbours_for_one_callback_go_together_and_order_is_kept() -> None:
    """Decisions are grouped only where that changes no order."""
    recorder = Recorder()
    decisions: list[Decision] = [
        Allocated("a", "1", "n"),
        Allocated("a", "2", "n"),
        ApplicationChanged("a", "Running", "run"),
        AskRejected("a", "3", NoNodeHasRoom({}, {}, "", 0, 0)),
        PriorityChanged("a", "4", 1, 2, "ann"),
        Allocated("a", "5", "n"),
    ]
    for call in calls_for(recorder, 7, decisions):
        call()
    assert recorder.calls == [
        AllocationResponse(new=(Allocated("a", "1", "n"), Allocated("a", "2", "n"))),
        ApplicationResponse(updated=(ApplicationChanged("a", "Running", "run"),)),
        AllocationResponse(rejected=(AskRejected("a", "3", NoNodeHasRoom({}, {}, "", 0, 0)),)),
        (7, PriorityChanged("a", "4", 1, 2, "ann")),
        AllocationResponse(new=(Allocated("a", "5", "n"),)),
    ]


def test_every_public_name_is_there() -> None:
    """What the package promises can be imported, and nothing else."""
    assert all(getattr(fairlead, name).__name__ == name for name in fairlead.__all__)
    assert set(fairlead.__all__) <= set(dir(fairlead))
    with pytest.raises(AttributeError, match="no attribute 'Schedular'"):
        fairlead.Schedular  # type: ignore[attr-defined]  # noqa: B018
