"""The history of a cluster's pods: what happens, for those who watch, and what can be learned from it.

Decides how turns are told as events, which pods that ended are remembered, and from which ends run times are learned.
Never changes anything in the books or the informer. Invariant: an event names a pod by `NAMESPACE/NAME`; numbers of
events only grow, also over a restart of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fairlead.core.model.decisions import Allocated, Decision
from fairlead.insight.runtimes import Kind, Runtimes
from fairlead.insight.scorecard import Scorecard
from fairlead.journal.format import SCHEDULE
from fairlead.kubernetes.control_loop import Told
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.pod_store import KnownPod, News
from fairlead.runtime.books import Entry
from fairlead.service.history_events import HistoryEvent, Visible, tell
from fairlead.service.kubernetes.pods import ClusterMoment, PodKind, our_pods
from fairlead.service.readers import Readers
from fairlead.wire.jobs import JobDetails

if TYPE_CHECKING:
    from fairlead.kubernetes.driver import Driver

ENDED_KEPT = 1_000
"""So many pods that ended can still be shown, the newest."""


@dataclass(slots=True)
class _Stay:
    """A pod that was placed on this control loop."""

    since_ms: int
    kind: Kind


def kind_of(known: KnownPod, driver: Driver) -> Kind:
    """What a pod is alike with: user, application and queue, and what it declares, as futures ask for it (`Future`)."""
    app, _ = ClusterMoment(driver).entry_of(known)
    user, queue = (app.user, app.queue.path) if app is not None else ("", "")
    return PodKind(user, known.application, queue).of(known.spec)


@dataclass(slots=True)
class PodHistory:
    """What happened since the start."""

    seq: int
    """The number of the last turn that was told; begins with the wall clock in milliseconds, above all that was."""
    runtimes: Runtimes = field(default_factory=Runtimes)
    """Learned from pods that ended by themselves."""
    card: Scorecard = field(default_factory=Scorecard)
    """What became of forecasts that somebody asked for."""
    ended: dict[str, JobDetails] = field(default_factory=dict)
    """The newest pods that ended, by `NAMESPACE/NAME`, as rows."""
    _stays: dict[str, _Stay] = field(default_factory=dict)
    readers: Readers[Visible] = field(default_factory=Readers)

    # -- what happens ---------------------------------------------------------------------------------------------

    def note(self, told: Told, driver: Driver) -> None:
        """One turn."""
        self.seq += 1
        gone = {news.pod.name.uid: news.pod for news in told.news if news.what != "came"}
        if self.readers:
            self.readers.offer([(event, None) for event in self._events(told, driver, gone)])
        for decision in told.decisions:
            if type(decision) is Allocated:
                known = driver.informer.pod_store.by_uid.get(decision.key) or gone.get(decision.key)
                if known is not None and not known.foreign and known.name.stands_for is None:
                    self.card.started((decision.partition, decision.application, decision.key), told.at_ms)
                    self._stays[decision.key] = _Stay(told.at_ms, kind_of(known, driver))
        for news in told.news:
            if news.what != "came":
                self._end(news, told.at_ms, driver)

    def begin_with(self, driver: Driver) -> None:
        """What runs already has a begin that the cluster knows."""
        for known in our_pods(driver.informer):
            if known.node and known.since_ms:
                self._stays[known.name.uid] = _Stay(known.since_ms, kind_of(known, driver))

    def _end(self, news: News, at_ms: int, driver: Driver) -> None:
        known = news.pod
        self.card.drop((driver.informer.partition, known.application, known.name.uid))
        stay = self._stays.pop(known.name.uid, None)
        if stay is not None and news.what in ("succeeded", "failed"):
            self.runtimes.learn(stay.kind, at_ms - stay.since_ms)
        key = str(known.name)
        self.ended.pop(key, None)
        if len(self.ended) >= ENDED_KEPT:
            del self.ended[next(iter(self.ended))]
        shown = ClusterMoment(driver).full(known)
        self.ended[key] = replace(
            shown,
            state=news.what,
            reason=None,
            queue=shown.queue or (stay.kind.queue if stay is not None else ""),
            user=shown.user or (stay.kind.user if stay is not None else ""),
            started_at_ms=stay.since_ms if stay is not None else None,
            ended_at_ms=at_ms,
        )

    # -- events ---------------------------------------------------------------------------------------------------

    def _events(self, told: Told, driver: Driver, gone: dict[str, KnownPod]) -> Iterator[HistoryEvent]:
        """A turn as events: who came, what was decided, who left."""
        happened = (
            *(("job.submitted", news.pod, _brief(news.pod)) for news in told.news if news.what == "came"),
            *self._decided(told.decisions, driver, gone),
            *(("job.ended", news.pod, {"state": news.what}) for news in told.news if news.what != "came"),
        )
        for index, (kind, about, fields) in enumerate(happened):
            key = str(about.name) if about is not None else ""
            yield HistoryEvent(self.seq, index, told.at_ms, kind, key, fields)

    def _decided(
        self, decisions: tuple[Decision, ...], driver: Driver, gone: dict[str, KnownPod]
    ) -> Iterator[tuple[str, KnownPod | None, dict[str, Any]]]:
        by_uid = driver.informer.pod_store.by_uid

        def pod(uid: str) -> KnownPod | None:
            return by_uid.get(uid) or gone.get(uid)

        for decision in decisions:
            about = pod(getattr(decision, "key", ""))
            if about is not None and about.foreign:
                continue
            for event in tell(Entry(self.seq, 0, SCHEDULE, {}, (decision,))):
                fields = {name: _named(value, pod) for name, value in event.fields.items()}
                if about is None and event.key:
                    fields = {"application": event.key} | fields
                yield event.type, about, fields


def _brief(known: KnownPod) -> dict[str, Any]:
    spec = known.spec
    return {"application": known.application, "priority": spec.priority, "resources": spec.resources.as_dict()}


def _named(value: Any, pod: Any) -> Any:
    """`APPLICATION/IDENTITY` of a pod as its name; anything else as it is."""
    if isinstance(value, str) and (known := pod(value.rpartition("/")[2])) is not None:
        return str(known.name)
    return value
