"""The pages of a cluster: the same, with pods as jobs, over a fake API server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from testbed.cluster_service import ClusterService, serving
from web.browsing import CHROMIUM, NEEDED, Watched

from fairlead.client import Client
from fairlead.client.address import Address

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusterService]:
    """Two nodes of 4 cores; it has a thread and a loop of its own."""
    if CHROMIUM is None:
        pytest.skip(NEEDED)
    ready, over, found = threading.Event(), threading.Event(), list[ClusterService]()

    async def live() -> None:
        async with serving(2, pages=True) as service:
            found.append(service)
            ready.set()
            while not over.is_set():
                await asyncio.sleep(0.05)

    thread = threading.Thread(target=asyncio.run, args=(live(),))
    thread.start()
    try:
        assert ready.wait(60)
        yield found[0]
    finally:
        over.set()
        thread.join(60)


@pytest.fixture
def asking(cluster: ClusterService) -> Client:
    return Client(Address.of_url(cluster.url, ""))


@pytest.fixture
def watched(asking: Client, chromium: Any) -> Iterator[Watched]:
    """A page of whoever may reach the port of this host, signed in by a ticket."""
    ticket = asking.ticket()
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    made = Watched(context.new_page(), ticket.url)
    made.page.goto(f"{ticket.url}/enter?ticket={ticket.ticket}")
    made.page.wait_for_url("**/line")
    yield made
    context.close()


def test_pods_stand_in_line_run_on_nodes_and_say_why_they_wait(
    cluster: ClusterService, asking: Client, watched: Watched
) -> None:
    page, url = watched.page, watched.page.url.removesuffix("/line")
    page.get_by_text("Nothing waits.").wait_for()
    for name in ("one", "two"):
        cluster.pod(name, "3")
    page.locator(".runs li[data-k='default/two']").wait_for()
    cluster.pod("three", "3")
    row = page.locator("tr[data-k='default/three']")
    row.wait_for()
    [told] = asking.line().line
    assert told.reason is not None
    assert told.reason.sentence[1:] in row.inner_text()
    watched.check()
    names = page.locator("header nav a").all_inner_texts()
    assert names == ["The line", "Now", "Jobs", "Queues"]

    row.get_by_role("link").click()
    page.wait_for_url("**/job/**")
    page.get_by_text(asking.why("default/three").sentence[1:]).first.wait_for()
    page.get_by_text("kubectl describe pod three -n default").wait_for()
    assert page.locator(".acts button").count() == 0, "nothing is changed from here"
    watched.check()

    page.goto(f"{url}/now")
    assert {"n0", "n1"} == set(page.locator(".node h3").all_inner_texts())
    page.locator(".cells a.cell[href='/job/default%2Fone']").first.wait_for()
    assert page.get_by_role("button", name="Drain").count() == 0
    watched.check()
    page.goto(f"{url}/queues")
    page.locator("tr[data-k='root.default']").get_by_text("6 used, 3 asked for").wait_for()
    assert page.get_by_role("button", name="Try").count() == 0
    watched.check()
    page.goto(f"{url}/policy")
    page.get_by_text("kubectl edit configmap").wait_for()


def test_a_change_that_only_the_cluster_makes_is_seen(cluster: ClusterService, watched: Watched) -> None:
    page, url = watched.page, watched.page.url.removesuffix("/line")
    page.goto(f"{url}/now")
    page.locator("[data-k='n0']").wait_for()
    node = cluster.server.one("nodes", "n0", "")
    assert node is not None
    cluster.server.put("nodes", {**node, "spec": {"unschedulable": True}})
    page.locator("[data-k='n0']", has_text="drained: takes no new work").wait_for()
    cluster.server.put("nodes", {**node, "spec": {}})
