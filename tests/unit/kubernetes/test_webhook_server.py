"""The webhook as a server: reviews over HTTPS, probes, figures, and its options."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner
from free_ports import free_port
from prometheus_client.parser import text_string_to_metric_families
from testbed.fake_server import FakeServer

from fairlead.cli.main import app
from fairlead.kubernetes.admission.pods import AdmissionRules
from fairlead.kubernetes.admission.server import BODY_MAX, WebhookOptions, WebhookServer
from fairlead.kubernetes.client import Client

APP_ID = "yunikorn.apache.org/app-id"


class Site:
    """A running webhook with an API server that it trusts, and a client that trusts what is registered there."""

    def __init__(self, webhook: WebhookServer, server: FakeServer, session: aiohttp.ClientSession) -> None:
        self.webhook, self.server, self.session = webhook, server, session

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.webhook.port}{path}"

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session.get(self.url(path), ssl=self._trust()) as answer:
            return answer.status, await answer.text()

    async def post(self, path: str, body: bytes) -> tuple[int, str]:
        async with self.session.post(self.url(path), data=io.BytesIO(body), ssl=self._trust()) as answer:
            return answer.status, await answer.text()

    async def review(self, thing: Any, kind: str = "Pod", path: str = "/mutate", namespace: str = "lab") -> Any:
        request = {
            "uid": "u1", "kind": {"group": "", "version": "v1", "kind": kind}, "namespace": namespace,
            "operation": "CREATE", "userInfo": {"username": "ada"}, "object": thing,
        }  # fmt: skip
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        status, text = await self.post(path, json.dumps(body).encode())
        assert status == 200, text
        return json.loads(text)["response"]

    def _trust(self) -> ssl.SSLContext:
        found: Any = self.server.one("mutatingwebhookconfigurations", "fairlead", "")
        return ssl.create_default_context(
            cadata=base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()
        )


@contextlib.asynccontextmanager
async def running(registered: bool = True) -> AsyncIterator[Site]:
    """A webhook at work."""
    server = FakeServer()
    server.put("namespaces", {"metadata": {"name": "lab", "annotations": {"fairlead.io/applications": "pod"}}})
    if registered:
        webhooks = [{"name": "pods.fairlead.io", "clientConfig": {}}]
        server.put("mutatingwebhookconfigurations", {"metadata": {"name": "fairlead"}, "webhooks": webhooks})
    port = free_port()
    options = WebhookOptions(
        rules=AdmissionRules(), host="127.0.0.1", port=port, names=("127.0.0.1",), config_map="fairlead/queues"
    )
    webhook = WebhookServer(Client(server), options, "fairlead")
    serving = asyncio.create_task(webhook.run())
    async with aiohttp.ClientSession() as session:
        try:
            while not webhook.namespaces.ready:
                await asyncio.wait({serving}, timeout=0.01)
                if serving.done():
                    serving.result()
            yield Site(webhook, server, session)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def test_a_review_is_answered_by_the_rules_of_the_namespace() -> None:
    """Over HTTPS, with the certificate that the API server was told to trust."""
    async with running() as site:
        answer = await site.review({"metadata": {"name": "p"}, "spec": {}})
    patch = json.loads(base64.b64decode(answer["patch"]))
    assert answer["allowed"] is True
    assert answer["uid"] == "u1"
    assert {"op": "add", "path": "/spec/schedulerName", "value": "fairlead"} in patch
    assert any(change["value"] == "lab-u1" for change in patch)


async def test_a_namespace_that_was_not_told_of_yet_is_asked_for() -> None:
    """The first pod of a namespace may come before the news of it."""
    async with running() as site:
        site.server.objects["namespaces"]["", "new"] = {
            "metadata": {"name": "new", "labels": {"fairlead.io/enabled": "false"}}
        }
        answer = await site.review({"metadata": {"name": "p"}, "spec": {}}, namespace="new")
    assert answer == {"uid": "u1", "allowed": True}


async def test_news_of_namespaces_count_at_once() -> None:
    """Changed and deleted ones."""
    async with running() as site:
        site.server.put("namespaces", {"metadata": {"name": "lab", "annotations": {"fairlead.io/enabled": "false"}}})
        while await site.review({"metadata": {"name": "p"}, "spec": {}}) != {"uid": "u1", "allowed": True}:
            await asyncio.sleep(0.01)
        site.server.remove("namespaces", "lab")
        while "patch" not in await site.review({"metadata": {"name": "p"}, "spec": {}}):
            await asyncio.sleep(0.01)


async def test_a_wrong_queue_file_is_refused() -> None:
    """On its own path."""
    async with running() as site:
        thing = {"metadata": {"name": "queues"}, "data": {"queues.yaml": "partitions: 3"}}
        answer = await site.review(thing, "ConfigMap", "/validate", "fairlead")
    assert answer["allowed"] is False
    assert answer["status"]["code"] == 422
    assert "the queue file cannot be used" in answer["status"]["message"]


async def test_probes_and_figures() -> None:
    """Ready when namespaces are known and the API server trusts it; reviews are counted by outcome."""
    async with running() as site:
        assert await site.get("/livez") == (200, "ok\n")
        assert await site.get("/healthz") == (200, "ok\n")
        assert await site.get("/readyz") == (200, "ok\n")
        await site.review({"metadata": {"name": "p"}, "spec": {}})
        assert (await site.post("/mutate", b"{}"))[0] == 400
        assert (await site.post("/mutate", b" " * (BODY_MAX + 1)))[0] == 413
        _, figures = await site.get("/metrics")
        ends = site.webhook.keyring.chain
    found = {f.name: (f.type, f.samples) for f in text_string_to_metric_families(figures)}
    kind, reviews = found["fairlead_webhook_reviews"]
    assert kind == "counter"
    assert {s.labels["outcome"]: (s.name, s.labels["path"], s.value) for s in reviews} == {
        "changed": ("fairlead_webhook_reviews_total", "/mutate", 1),
        "unreadable": ("fairlead_webhook_reviews_total", "/mutate", 1),
    }
    kind, (expiry,) = found["fairlead_webhook_certificate_expiry_seconds"]
    assert ends is not None
    assert (kind, expiry.value) == ("gauge", ends.server.parsed.not_valid_after_utc.timestamp())


async def test_nobody_asks_a_webhook_that_is_not_registered() -> None:
    """It says so, and serves."""
    async with running(registered=False) as site:
        assert not site.webhook.ready


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--queue-file", "queues"], "write NAMESPACE/NAME"),
        (["--applications", "all"], "'all' is not one of 'namespace', 'owner', 'pod', 'none'"),
        (["--listen", "8443"], "write HOST:PORT"),
        (["--log-level", "loud"], "'loud' is not one of"),
    ],
)
def test_wrong_options_are_told_before_anything_is_sent(options: list[str], text: str) -> None:
    """With status 2."""
    done = CliRunner().invoke(app, ["kubernetes", "webhook", *options])
    assert done.exit_code == 2
    assert text in done.output


def test_a_cluster_that_cannot_be_found_is_one_sentence(tmp_path: Any) -> None:
    """With status 1."""
    done = CliRunner().invoke(app, ["kubernetes", "webhook", "--kubeconfig", str(tmp_path / "none")])
    assert done.exit_code == 1
    assert "cannot be read" in done.output
