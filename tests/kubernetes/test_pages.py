"""The pages of a cluster on a real API server: every page in a real browser, held against what the API says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from testbed.cluster import Cluster, Running, pod, priority_class
from web.browsing import Watched, browser

from fairlead.client import Client
from fairlead.client.address import Address

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

QUEUES = """
partitions:
  - name: default
    preemption:
      rule: both
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: research
            resources: {guaranteed: {vcore: 2}, max: {vcore: 8}}
            properties: {priority.offset: "10"}
          - name: default
"""
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as running:
        yield running


def enter(chromium: Any, running: Running, viewport: dict[str, int] | None = None) -> Watched:
    """A page of whoever may reach the port of this host."""
    ticket = Client(Address.of_url(running.url, "")).ticket()
    page = chromium.new_context(viewport=viewport or {"width": 1400, "height": 900}).new_page()
    made = Watched(page, ticket.url)
    page.goto(f"{ticket.url}/enter?ticket={ticket.ticket}")
    page.wait_for_url("**/line")
    return made


def queued(name: str, queue: str, cpu: str, **more: Any) -> dict[str, Any]:
    return pod(name, cpu, labels={"queue": queue, "applicationId": name}, **more)


def test_every_page_says_what_the_api_says_and_follows_the_cluster(cluster: Cluster, chromium: Any) -> None:
    cluster.nodes(2, cpu="4")
    cluster.apply(priority_class("high", 1000))
    running = cluster.schedule(QUEUES, "--pages-port", "0")
    client = Client(Address.of_url(running.url, ""))
    watched = enter(chromium, running)
    page, url = watched.page, watched.page.url.removesuffix("/line")
    page.get_by_text("Nothing waits.").wait_for()
    watched.check()

    # What is put on a node and what waits is seen without loading anything again.
    other = queued("other", "root.default", "3", activeDeadlineSeconds=600)
    cluster.apply(queued("study", "root.research", "3"), other)
    cluster.until_placed("study", "other")
    page.locator(".runs li[data-k='default/study']").wait_for()
    cluster.apply(queued("waits", "root.default", "2"), queued("wide", "root.research", "9"))
    for name in ("waits", "wide"):
        row = page.locator(f"tr[data-k='default/{name}']")
        row.get_by_text("waits").first.wait_for()
        cluster.until_told(name, "")
        told = next(each for each in client.line().line if each.key == f"default/{name}")
        assert told.reason is not None
        row.get_by_text(told.reason.sentence[1:]).wait_for()
        assert str(told.effective) in row.inner_text()
    # Nothing has ended: that is said, not guessed.
    page.locator("tr[data-k='default/waits'] .expected").get_by_text("not known yet").wait_for()
    watched.check()

    # A job: why, the limits on its way, and a change as a request to whoever may make it.
    page.locator("tr[data-k='default/wide']").get_by_role("link").click()
    page.wait_for_url("**/job/**")
    page.get_by_text(client.why("default/wide").sentence[1:]).first.wait_for()
    page.get_by_text("kubectl describe pod wide -n default").wait_for()
    assert page.locator(".acts button").count() == 0, "nothing is changed from here"
    page.get_by_role("button", name="Find the smallest changes").click()
    page.locator(".ways li").first.wait_for()
    assert page.get_by_role("button", name="Do it").count() == 0
    watched.check()

    # Nodes, with a cordon that only the cluster makes.
    page.goto(f"{url}/now")
    assert {"n0", "n1"} == set(page.locator(".node h3").all_inner_texts())
    page.locator(".cells a.cell[href='/job/default%2Fstudy']").first.wait_for()
    cluster.plane.kubectl("cordon", "n1")
    page.locator("[data-k='n1']", has_text="drained: takes no new work").wait_for()
    cluster.plane.kubectl("uncordon", "n1")
    page.locator("[data-k='n1']", has_text="drained").wait_for(state="detached")
    watched.check()

    # Queues as the API has them.
    page.goto(f"{url}/queues")
    for queue in ("root.research", "root.default"):
        told_of = json.loads(running.read(f"/ws/v1/partition/default/queue/{queue}"))
        used = told_of["allocatedResource"]["vcore"] // 1000
        page.locator(f"tr[data-k='{queue}']").get_by_text(f"{used} used").first.wait_for()
    watched.check()

    # All pods, and who was stopped for whom.
    page.goto(f"{url}/jobs")
    assert page.locator("tbody tr").count() == 4
    watched.check()
    cluster.apply(queued("urgent", "root.default", "3", priority="high"))
    cluster.until_placed("urgent")
    page.locator("tr[data-k='default/urgent']").get_by_text("running").wait_for()
    victims = {"study", "other"} - set(cluster.places())
    assert victims == {"other"}, "what is within its guarantee is not stopped"
    page.goto(f"{url}/policy")
    page.get_by_text("kubectl edit configmap").wait_for()
    watched.check()


def test_on_a_phone_nothing_is_wider_than_the_screen(cluster: Cluster, chromium: Any) -> None:
    cluster.nodes(2, cpu="4")
    cluster.apply(*(queued(f"long-name-of-a-pod-number-{number}", "root.default", "3") for number in range(4)))
    running = cluster.schedule(QUEUES, "--pages-port", "0")
    watched = enter(chromium, running, PHONE)
    page, url = watched.page, watched.page.url.removesuffix("/line")
    page.locator("tr[data-k^='default/']").first.wait_for()
    waits = Client(Address.of_url(running.url, "")).line().line[0].key
    for path in ("/line", "/now", "/jobs", "/queues", "/policy", f"/job/{waits.replace('/', '%2F')}"):
        page.goto(url + path)
        page.wait_for_selector("#content")
        page.wait_for_timeout(500)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
        watched.check()
