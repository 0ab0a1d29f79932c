"""The webhook's server: reviews over HTTPS, probes and figures.

Decides which question goes where, and what is answered while namespaces are not known yet. Never judges a pod.
Invariant: every review gets an answer of its own; what cannot be read is refused with status 400.
"""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from fairlead.config import ERROR, ConfigurationError, check_text
from fairlead.kubernetes import kinds
from fairlead.kubernetes.access import Access, AccessError, find_access
from fairlead.kubernetes.admission import pods, review
from fairlead.kubernetes.admission.keyring import Keyring, Lifetimes
from fairlead.kubernetes.admission.mounted import MountedCertificates, UnusableCertificate
from fairlead.kubernetes.admission.pods import AdmissionRules
from fairlead.kubernetes.client import ApiError, Client, Unreachable
from fairlead.kubernetes.connection import Connection
from fairlead.kubernetes.objects import Namespace
from fairlead.kubernetes.reflector import Change, Changed, Deleted, Reflector
from fairlead.kubernetes.translate.queues import queues_of
from fairlead.runtime.process import log_to_stderr

KEY = "queues.yaml"
SHOWN = 20
"""Problems that are told at most."""


def review_queue_file(question: review.Question, config_map: str) -> review.Verdict:
    """Whether a change of a ConfigMap is taken; `config_map` is the `namespace/name` of the queue file."""
    if question.kind.kind != "ConfigMap" or question.operation not in ("CREATE", "UPDATE"):
        return review.ALLOWED
    thing: Any = question.object if isinstance(question.object, dict) else {}
    name = question.name or (thing.get("metadata") or {}).get("name") or ""
    if f"{question.namespace}/{name}" != config_map:
        return review.ALLOWED
    text = (thing.get("data") or {}).get(KEY)
    if not isinstance(text, str) or not text:
        return review.Verdict(False, f"configmap {config_map} needs the key {KEY} with the queue file", review.INVALID)
    problems = check_text(text, KEY)
    try:
        queues_of(text, KEY)
    except ConfigurationError as flaw:
        problems = list(flaw.problems)
    errors = [str(problem) for problem in problems if problem.severity == ERROR]
    others = tuple(str(problem) for problem in problems if problem.severity != ERROR)[:SHOWN]
    if not errors:
        return review.Verdict(warnings=others)
    more = [f"... and {len(errors) - SHOWN} more"] if len(errors) > SHOWN else []
    return review.Verdict(False, "\n".join(["the queue file cannot be used:", *errors[:SHOWN], *more]), review.INVALID)


log = logging.getLogger("fairlead.kubernetes")

BODY_MAX = 8 * 2**20
"""Bytes of a review; the API server itself takes objects of a few MiB."""
MUTATE, VALIDATE = "/mutate", "/validate"
STOP_S = 10.0
"""How long reviews that are under way may take when it stops."""
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
"""A namespace; whatever else somebody sends never gets into a path."""


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """What a webhook is started with."""

    rules: AdmissionRules = field(default_factory=AdmissionRules)
    host: str = "0.0.0.0"
    port: int = 8443
    service: str = "fairlead-webhook"
    namespace: str = ""
    """Where service and secret are; empty: where our credentials are."""
    secret: str = "fairlead-webhook"
    configuration: str = "fairlead"
    """The name of the webhook configurations."""
    config_map: str = ""
    """`namespace/name` of the queue file; empty: none is checked."""
    names: tuple[str, ...] = ()
    """Further names or addresses of the server."""
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    certificates: Path | None = None
    """A folder with certificates that somebody else makes; None: they are made here."""


class Namespaces:
    """Labels and annotations of all namespaces."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._notes: dict[str, dict[str, str]] = {}
        self._synced = asyncio.Event()
        self.reflector = Reflector(client, kinds.NAMESPACES, self._take)

    @property
    def ready(self) -> bool:
        """Whether all of them are known."""
        return self._synced.is_set()

    async def notes_of(self, name: str) -> dict[str, str]:
        """Annotations and labels of a namespace; one that nobody has told of yet is asked for."""
        if name not in self._notes and NAME.fullmatch(name):
            try:
                self._keep(await self._client.get(kinds.NAMESPACES, name))
            except (ApiError, Unreachable) as e:
                log.warning("namespace %s: %s", name, e)
        return self._notes.get(name, {})

    def _keep(self, namespace: Namespace) -> None:
        meta = namespace.metadata
        self._notes[meta.name] = {**(meta.labels or {}), **(meta.annotations or {})}

    def _take(self, change: Change) -> None:
        if isinstance(change, Changed):
            self._keep(change.object)
        elif isinstance(change, Deleted):
            self._notes.pop(change.name, None)
        else:
            self._synced.set()


class WebhookServer:
    """One replica of the webhook."""

    def __init__(self, client: Client, options: WebhookOptions, namespace: str) -> None:
        """`namespace` is where the service and the secret are. Must be made inside a running event loop."""
        self.port = options.port
        """The port that it listens on, once it does."""
        service = options.service
        self.keyring: Keyring | MountedCertificates
        if options.certificates is not None:
            self.keyring = MountedCertificates(options.certificates)
        else:
            self.keyring = Keyring(
                client,
                namespace=namespace,
                secret=options.secret,
                configuration=options.configuration,
                names=(f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local", *options.names),
                now=lambda: datetime.now(UTC),
                lifetimes=options.lifetimes,
            )
        self.namespaces = Namespaces(client)
        self.answered: Counter[tuple[str, str]] = Counter()
        """Reviews by path and outcome."""
        self._options = options

    @property
    def ready(self) -> bool:
        """Whether it can answer, and the API server can trust it."""
        return self.namespaces.ready and self.keyring.expires is not None and self.keyring.trusted

    async def run(self) -> None:
        """Serve until cancelled. Raises `ApiError` or `Unreachable` when it cannot begin, `OSError` for the port."""
        await self.keyring.look()
        # The signal handlers are the caller's; whoever is being answered when it ends is answered.
        runner = web.AppRunner(self.app(), handle_signals=False, access_log=None, shutdown_timeout=STOP_S)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._options.host or None, self._options.port, ssl_context=self.keyring.context)
            await site.start()
            self.port = runner.addresses[0][1]
            log.info("the webhook listens on %s:%d", self._options.host, self.port)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.keyring.run())
                tasks.create_task(self.namespaces.reflector.run())
        finally:
            await runner.cleanup()

    def app(self) -> web.Application:
        """What is served where."""
        app = web.Application(client_max_size=BODY_MAX)
        app.router.add_post(MUTATE, self._review)
        app.router.add_post(VALIDATE, self._review)
        app.router.add_get("/livez", self._alive)
        app.router.add_get("/healthz", self._alive)
        app.router.add_get("/readyz", self._readiness)
        app.router.add_get("/metrics", self._figures)
        return app

    # -- reviews --------------------------------------------------------------------------------------------------

    async def _review(self, request: web.Request) -> web.Response:
        try:
            question = review.question_of(await request.read())
        except review.UnreadableReview as e:
            self.answered[request.path, "unreadable"] += 1
            return web.Response(status=400, text=str(e))
        verdict = await self.judge(question, request.path)
        outcome = "refused" if not verdict.allowed else "changed" if verdict.patch else "allowed"
        self.answered[request.path, outcome] += 1
        if not verdict.allowed:
            log.info(
                "refused %s %s %s/%s by %s: %s",
                question.operation,
                question.kind.kind,
                question.namespace,
                question.name or "",
                question.user,
                verdict.message.partition("\n")[0],
            )
        return web.Response(body=review.answer_to(question, verdict), content_type="application/json")

    async def judge(self, question: review.Question, path: str) -> review.Verdict:
        """What is answered to a question that came to this path."""
        if path == VALIDATE:
            # Reading a large file takes a while; pods must not wait for it.
            return await asyncio.to_thread(review_queue_file, question, self._options.config_map)
        notes = await self.namespaces.notes_of(question.namespace or "")
        return pods.review(question, self._options.rules, notes)

    # -- probes and figures ---------------------------------------------------------------------------------------

    async def _alive(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readiness(self, _request: web.Request) -> web.Response:
        if self.ready:
            return web.Response(text="ok\n")
        missing = "the API server does not trust it yet" if self.namespaces.ready else "namespaces are being read"
        return web.Response(status=503, text=f"not ready: {missing}\n")

    async def _figures(self, _request: web.Request) -> web.Response:
        registry = CollectorRegistry()
        registry.register(_Figures(self.answered, self.keyring))
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


class _Figures(Collector):
    """What one scrape shows."""

    def __init__(self, answered: Counter[tuple[str, str]], keyring: Keyring | MountedCertificates) -> None:
        self._answered, self._keyring = answered, keyring

    def collect(self) -> Iterator[Metric]:
        reviews = CounterMetricFamily("fairlead_webhook_reviews", "Reviews answered.", labels=("path", "outcome"))
        for labels, count in sorted(self._answered.items()):
            reviews.add_metric(labels, count)
        yield reviews
        if self._keyring.expires is not None:
            yield GaugeMetricFamily(
                "fairlead_webhook_certificate_expiry_seconds",
                "When the certificate ends, in seconds since 1970.",
                value=self._keyring.expires.timestamp(),
            )


async def serve(access: Access, options: WebhookOptions) -> None:
    """Serve one webhook until cancelled; see `WebhookServer.run`."""
    client = Client(Connection(access))
    try:
        await WebhookServer(client, options, options.namespace or access.namespace).run()
    finally:
        await client.transport.close()


log = logging.getLogger("fairlead.kubernetes")


def serve_webhook(
    options: WebhookOptions, kubeconfig: str | None = None, context: str | None = None, log_level: str = "info"
) -> int:
    """Serve until SIGTERM or SIGINT; the exit status: 0 after an orderly stop, 1 if it could not start or go on."""
    log_to_stderr(log_level)
    try:
        asyncio.run(_until_told(find_access(kubeconfig, context), options))
    except (AccessError, Unreachable, UnusableCertificate) as problem:
        return _failed(str(problem))
    except ApiError as problem:
        return _failed(f"the API server refuses what the webhook needs: {problem}; look at its Role and ClusterRole")
    except OSError as problem:
        return _failed(f"cannot listen on {options.host}:{options.port}: {problem.strerror or problem}")
    log.info("stopped")
    return 0


async def _until_told(access: Access, options: WebhookOptions) -> None:
    """Serve until a signal comes. Raises what ended the serving before."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, told.set)
    serving = asyncio.create_task(serve(access, options), name="serve")
    waiting = asyncio.create_task(told.wait(), name="wait for a signal")
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, waiting):
        task.cancel()
    await asyncio.gather(serving, waiting, return_exceptions=True)
    fault = None if serving.cancelled() else serving.exception()
    while isinstance(fault, ExceptionGroup):
        fault = fault.exceptions[0]
    if fault is not None:
        raise fault


def _failed(sentence: str) -> int:
    sys.stderr.write(f"fairlead: {sentence}\n")
    return 1
