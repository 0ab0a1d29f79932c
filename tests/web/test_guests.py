"""Strangers may look where the service lets them, and nothing more."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web.browsing import CHROMIUM, NEEDED, PagesService, Watched

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def open_service() -> Iterator[PagesService]:
    if CHROMIUM is None:
        pytest.skip(NEEDED)
    directory = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    made = PagesService(directory, "--resource", "cpu=4", "--pages-port", "0", "--open-reads", "--private-names")
    yield made
    made.close()
    shutil.rmtree(directory)


def test_a_guest_sees_who_waits_and_runs_and_can_do_nothing(open_service: PagesService, chromium: Any) -> None:
    service = open_service
    runs = service.submit("sleep", "100", name="secret", resources={"cpu": 4}, grace_ms=0)
    waits = service.submit("true", name="secret", resources={"cpu": 2})
    context = chromium.new_context()
    watched = Watched(context.new_page(), service.url)
    page = watched.page
    page.goto(f"{service.url}/line")
    page.get_by_role("button", name="Look around as a guest").click()
    page.wait_for_url("**/line")
    page.locator(f"tr[data-k='{waits}']").wait_for()
    page.locator(f".runs li[data-k='{runs}']").wait_for()
    assert "secret" not in page.content(), "names are private"
    assert page.locator("a[href^='/job/']").count() == 0
    assert page.locator("header nav a").all_inner_texts() == ["The line", "Now", "Queues"]
    watched.check()
    page.goto(f"{service.url}/now")
    page.locator(".node").wait_for()
    assert page.get_by_role("button", name="Drain").count() == 0
    page.goto(f"{service.url}/queues")
    page.locator("tr[data-k='root.default']").wait_for()
    assert page.get_by_role("button", name="Try").count() == 0
    page.goto(f"{service.url}/submit")
    page.get_by_text("Sign in to submit jobs.").wait_for()
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("Who are you?").wait_for()
    context.close()
