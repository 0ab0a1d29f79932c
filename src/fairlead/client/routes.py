"""Every call of the service's interface, once for both clients.

Decides paths, queries and bodies. Never sends one: `Client` does at once, `AsyncClient` when it is awaited. Invariant:
the shape of an answer is the one that the method promises to return.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from fairlead.client.address import Address, find_address
from fairlead.client.calls import ANSWER_S, listed, route
from fairlead.client.calls import call as _call
from fairlead.client.calls import path_of as _of
from fairlead.client.http import Call
from fairlead.client.occupancy import OccupancyRoutes
from fairlead.client.pages import PageRoutes
from fairlead.client.windows import WindowRoutes

if TYPE_CHECKING:
    from fairlead.wire import cluster, configuration, declarations, jobs, questions, verdicts

Stream = Literal["stdout", "stderr"]


def _job(key: str, *rest: str) -> str:
    """The path of a job."""
    return _of("jobs", key, *rest)


def _given(**values: Any) -> dict[str, Any]:
    """What is said of a change; None: nothing."""
    return {name: value for name, value in values.items() if value is not None}


class Routes(WindowRoutes, OccupancyRoutes, PageRoutes):
    """The calls. Each raises a `ClientError`: `Refused`, `ServiceFailed`, `Unreachable` or `NoService`.

    Without an address the service is that of the environment, the configuration, or the usual place.
    """

    def __init__(self, address: Address | None = None, *, timeout_s: float = 30.0) -> None:
        self.address, self.timeout_s = address or find_address(), timeout_s

    # -- jobs --------------------------------------------------------------------------------------------------------

    @route
    def submit(
        self, drafts: Sequence[jobs.JobDraft | Mapping[str, Any]], *, idempotency_key: str = ""
    ) -> Call[jobs.JobList]:
        """Take in jobs, all or none. With a key of your own, also a later call submits them only once."""
        headers = {"Idempotency-Key": idempotency_key or os.urandom(16).hex()}
        return Call("POST", "/jobs", body={"jobs": drafts}, headers=headers)

    @route
    def job(self, key: str) -> Call[jobs.JobDetails]:
        """Everything about a job."""
        return _call("GET", _job(key))

    @route
    def script(self, key: str) -> Call[jobs.ScriptText]:
        """The script of a job that lives, as it was submitted."""
        return _call("GET", _job(key, "script"))

    @route
    def cancel(self, key: str, *, states: Sequence[str] = (), now: bool = False) -> Call[jobs.Job]:
        """End a job; with `states`, only while it is in one of them; `now`: killed at once, without its grace."""
        return _call("POST", _job(key, "cancel"), _given(states=list(states) or None, now=now or None), repeat=False)

    @route
    def change(  # noqa: PLR0913 - each thing that can be changed
        self,
        key: str,
        *,
        priority: int | None = None,
        queue: str | None = None,
        name: str | None = None,
        resources: Mapping[str, float] | None = None,
        time_limit_ms: int | None = None,
        begin_at_ms: int | None = None,
        after: Sequence[jobs.Dependency | Mapping[str, str]] | None = None,
        on_never: str | None = None,
        command: Sequence[str] | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        unset_env: Sequence[str] | None = None,
        tags: Mapping[str, str] | None = None,
        at_once: int | None = None,
        why: str | None = None,
    ) -> Call[jobs.SubmittedJob]:
        """Change what is given of a job, with the reason for its history; see `wire.orders.JobChange`."""
        where = _given(priority=priority, queue=queue, name=name, why=why)
        what = _given(resources=resources, time_limit_ms=time_limit_ms, at_once=at_once)
        when = _given(begin_at_ms=begin_at_ms, after=after, on_never=on_never)
        how = _given(command=command, cwd=cwd, env=env, unset_env=unset_env, tags=tags)
        return _call("PATCH", _job(key), where | what | when | how)

    @route
    def signal(self, key: str, number: int, *, first: bool = False) -> Call[jobs.Job]:
        """Send a signal to the processes of a job that runs, or to its first one alone."""
        return _call("POST", _job(key, "signal"), {"number": number, "first": first}, repeat=False)

    @route
    def suspend(self, key: str, *, why: str = "") -> Call[jobs.Job]:
        """Let a job that runs stand still; it keeps its room."""
        return _call("POST", _job(key, "suspend"), {"why": why}, repeat=False)

    @route
    def resume(self, key: str, *, why: str = "") -> Call[jobs.Job]:
        """Let a job that is suspended go on."""
        return _call("POST", _job(key, "resume"), {"why": why}, repeat=False)

    @route
    def requeue(self, key: str, *, hold: bool = False, why: str = "") -> Call[jobs.Job]:
        """Stop a job that runs, and let it wait again, at once or on hold."""
        return _call("POST", _job(key, "requeue"), {"hold": hold, "why": why}, repeat=False)

    @route
    def rerun(
        self,
        key: str,
        *,
        env: Mapping[str, str] | None = None,
        script: str = "",
        failed: bool = False,
        hold: bool = False,
    ) -> Call[jobs.SubmittedJob]:
        """Submit what has ended once more; the new one. `env`, `script`: the variables and the script that it had;
        `failed`: only what did not end well; `hold`: it waits until it is released.
        """
        given = _given(env=dict(env or {}), script=script or None, failed=failed or None, hold=hold or None)
        return _call("POST", _job(key, "rerun"), given, repeat=False)

    @route
    def hold(self, key: str, *, why: str = "") -> Call[jobs.Job]:
        """Keep a job that waits from starting until it is released."""
        return _call("POST", _job(key, "hold"), {"why": why}, repeat=False)

    @route
    def release(self, key: str, *, why: str = "") -> Call[jobs.Job]:
        """Let a job that is on hold start as soon as it can."""
        return _call("POST", _job(key, "release"), {"why": why}, repeat=False)

    @route
    def reserve(self, key: str, *, on: bool = True, why: str = "") -> Call[jobs.Job]:
        """Keep the next room for a job that waits, or no longer."""
        return _call("POST", _job(key, "reserve"), {"on": on, "why": why}, repeat=False)

    @route
    def checkpoint(self, key: str, *, attempt: int | None = None) -> Call[jobs.Done]:
        """Say that a running job has saved what it did."""
        return _call("POST", _job(key, "checkpoint"), _given(attempt=attempt), repeat=False)

    @route
    def clean(self, older_than_ms: int, *, dry_run: bool = False) -> Call[jobs.Cleaned]:
        """Remove jobs that ended longer ago than this, with their output: the caller's; an administrator's: all."""
        return _call("POST", "/clean", {"older_than_ms": older_than_ms, "dry_run": dry_run}, repeat=False)

    # -- questions ---------------------------------------------------------------------------------------------------

    @route
    def why(self, key: str, *, changes: bool = False, seconds: float | None = None) -> Call[verdicts.Why]:
        """Why a job is in its state; with `changes` also what would start it, and what to do.

        That takes up to `seconds` (10 if not given).
        """
        spend = None if seconds is None else f"{seconds:g}"
        return _call("GET", _job(key, "why"), changes="true" if changes else None, seconds=spend, takes_s=ANSWER_S)

    @route
    def when(self, key: str, *, seconds: float | None = None) -> Call[questions.When]:
        """When a job that waits is expected to start; `seconds` to look ahead for."""
        spend = None if seconds is None else f"{seconds:g}"
        return _call("GET", _job(key, "forecast"), seconds=spend, takes_s=ANSWER_S)

    @route
    def score(self) -> Call[questions.Score]:
        """How often forecasts came true."""
        return _call("GET", "/forecasts/score")

    @route
    def what_if(self, /, **supposed: Any) -> Call[questions.Otherwise]:
        """What would be otherwise: exactly one of the changes of `wire.questions.Supposed`, such as `cancel=["17"]`."""
        return _call("POST", "/whatif", supposed, takes_s=ANSWER_S)

    # -- queues, nodes, use ------------------------------------------------------------------------------------------

    @route
    def service(self) -> Call[cluster.Service]:
        """What the service is, who asks, and whether all is well."""
        return _call("GET", "/info")

    @route
    def drain(self, node: str) -> Call[cluster.Node]:
        """Take no new work on a node."""
        return _call("POST", _of("nodes", node, "drain"), {}, repeat=False)

    @route
    def undrain(self, node: str) -> Call[cluster.Node]:
        """Let a node take work again."""
        return _call("POST", _of("nodes", node, "undrain"), {}, repeat=False)

    @route
    def label(
        self, node: str, *, attributes: Mapping[str, str], taints: Sequence[cluster.NodeTaint | Mapping[str, str]]
    ) -> Call[cluster.Node]:
        """Say all attributes and taints of a node."""
        return _call("PUT", _of("nodes", node, "labels"), {"attributes": attributes, "taints": taints})

    # -- what is declared --------------------------------------------------------------------------------------------

    @route
    def set_priority_class(
        self, name: str, draft: declarations.ClassDraft | Mapping[str, Any]
    ) -> Call[declarations.PriorityClass]:
        """Make or change a priority class."""
        return _call("PUT", _of("priority-classes", name), draft)

    @route
    def remove_priority_class(self, name: str) -> Call[jobs.Done]:
        """Remove a priority class."""
        return _call("DELETE", _of("priority-classes", name), repeat=False)

    @route
    def set_quota(self, name: str, draft: declarations.QuotaDraft | Mapping[str, Any]) -> Call[declarations.Quota]:
        """Make or change a quota."""
        return _call("PUT", _of("quotas", name), draft)

    @route
    def remove_quota(self, name: str) -> Call[jobs.Done]:
        """Remove a quota."""
        return _call("DELETE", _of("quotas", name), repeat=False)

    @route
    def set_budget(self, name: str, draft: declarations.BudgetDraft | Mapping[str, Any]) -> Call[declarations.Budget]:
        """Make or change a disruption budget."""
        return _call("PUT", _of("budgets", name), draft)

    @route
    def remove_budget(self, name: str) -> Call[jobs.Done]:
        """Remove a disruption budget."""
        return _call("DELETE", _of("budgets", name), repeat=False)

    # -- the queue file ----------------------------------------------------------------------------------------------

    @route
    def config(self, *, version: int | None = None) -> Call[configuration.ConfigAnswer]:
        """The queue file in force, or an earlier version."""
        return _call("GET", "/config", version=version)

    @route
    def config_status(self) -> Call[configuration.ConfigStatus]:
        """Which version is in force, and how the watched file stands to it."""
        return _call("GET", "/config/status")

    @route
    def config_difference(
        self, *, text: str | None = None, version: int | None = None
    ) -> Call[configuration.ConfigDifference]:
        """What a queue file, or an earlier version, would change."""
        return _call("POST", "/config/diff", _given(text=text, version=version))

    @route
    def compare_config(
        self, *, text: str | None = None, version: int | None = None, days: int = 7
    ) -> Call[configuration.ConfigPast]:
        """What a queue file, or an earlier version, would have made of the work of the last days; up to a minute."""
        return _call("POST", "/config/compare", _given(text=text, version=version, days=days), takes_s=ANSWER_S)

    @route
    def apply_config(self, text: str, *, base: str | None = None) -> Call[configuration.ConfigApplied]:
        """Put a queue file in force; with `base`, only if that is the checksum of what is."""
        return _call("PUT", "/config", _given(text=text, base=base))

    @route
    def roll_config_back(
        self, *, version: int | None = None, base: str | None = None
    ) -> Call[configuration.ConfigApplied]:
        """Put an earlier version in force again."""
        return _call("POST", "/config/rollback", _given(version=version, base=base), repeat=False)

    # -- tokens ------------------------------------------------------------------------------------------------------

    @route
    def create_token(
        self,
        *,
        name: str = "",
        user: str = "",
        scope: declarations.TokenScope = "administer",
        queue: str = "",
        lifetime_ms: int | None = None,
    ) -> Call[declarations.NewToken]:
        """Make a token; its text is in this answer alone. `lifetime_ms`: None: it is accepted until it is revoked."""
        said = _given(name=name or None, user=user or None, scope=scope, queue=queue or None, lifetime_ms=lifetime_ms)
        return _call("POST", "/tokens", said, repeat=False)

    @route
    def revoke_token(self, identifier: str) -> Call[jobs.Done]:
        """Revoke a token."""
        return _call("DELETE", _of("tokens", identifier), repeat=False)

    # -- lists -------------------------------------------------------------------------------------------------------

    @listed("cluster.QueuePage")
    def queues(self) -> Call[cluster.Queue]:
        """The roots of all trees of queues."""
        return _call("GET", "/queues")

    @listed("cluster.NodePage")
    def nodes(self) -> Call[cluster.Node]:
        """All nodes."""
        return _call("GET", "/nodes")

    @listed("declarations.UsePage")
    def usage(self, *, user: str | None = None, group: str | None = None) -> Call[declarations.Use]:
        """Who uses what: one user, one group, or all."""
        return _call("GET", "/usage", user=user, group=group)

    @listed("declarations.LimitPage")
    def limits(self) -> Call[declarations.Limit]:
        """The limits of users and groups."""
        return _call("GET", "/limits")

    @listed("declarations.PriorityClassPage")
    def priority_classes(self) -> Call[declarations.PriorityClass]:
        """The priority classes, highest first."""
        return _call("GET", "/priority-classes")

    @listed("declarations.QuotaPage")
    def quotas(self) -> Call[declarations.Quota]:
        """The quotas by class."""
        return _call("GET", "/quotas")

    @listed("declarations.BudgetPage")
    def budgets(self) -> Call[declarations.Budget]:
        """The disruption budgets."""
        return _call("GET", "/budgets")

    @listed("configuration.ConfigPage")
    def config_history(self) -> Call[configuration.ConfigVersion]:
        """The versions of the queue file that are kept, newest first."""
        return _call("GET", "/config/history")

    @listed("declarations.TokenPage")
    def tokens(self) -> Call[declarations.Token]:
        """The caller's tokens."""
        return _call("GET", "/tokens")

    @listed("jobs.JobPage")
    def jobs(  # noqa: PLR0913 - each filter
        self,
        *,
        state: str | Sequence[str] | None = None,
        queue: str | Sequence[str] | None = None,
        user: str | Sequence[str] | None = None,
        name: str | Sequence[str] | None = None,
        tag: str | Sequence[str] | None = None,
        namespace: str | None = None,
        array: str | None = None,
        parts: bool = False,
        limit: int | None = None,
    ) -> Call[jobs.Job]:
        """Jobs in these states, in these queues or below, of these users, names (of pods the application) and tags, in
        this namespace of a cluster; oldest first, at most `limit`. `*` stands for any text. An array is one job, unless
        its `parts` or those of an `array` are wanted.
        """
        query = {"state": state, "queue": queue, "user": user, "name": name, "tag": tag, "namespace": namespace}
        query |= {"array": array} | ({"parts": "true"} if parts else {})
        return Call("GET", "/jobs", query, most=limit)

    # -- what comes in pieces ----------------------------------------------------------------------------------------

    @staticmethod
    def _log(
        key: str, stream: Stream, offset: int, limit: int | None, attempt: int | None, follow: bool
    ) -> Call[bytes]:
        query = {"stream": stream, "offset": offset, "limit": limit, "attempt": attempt}
        return Call("GET", _job(key, "logs"), query | ({"follow": "true"} if follow else {}))

    @staticmethod
    def _events(after: str, since: int | None) -> Call[bytes]:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        return Call("GET", "/events", {"from": since}, headers=headers)
