"""One service with pages and one browser for the tests of this folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web.browsing import CHROMIUM, NEEDED, PagesService, Watched, browser


@pytest.fixture(scope="module")
def service() -> Iterator[PagesService]:
    if CHROMIUM is None:
        pytest.skip(NEEDED)
    directory = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    made = PagesService(directory, "--resource", "cpu=4", "--resource", "memory=8Gi", "--pages-port", "0")
    yield made
    made.close()
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as running:
        yield running


@pytest.fixture
def watched(service: PagesService, chromium: Any) -> Iterator[Watched]:
    """A page of root, signed in by a ticket."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    made = Watched(context.new_page(), service.url)
    made.page.goto(service.way_in())
    made.page.wait_for_url("**/line")
    made.page.wait_for_selector("#p-line")
    yield made
    context.close()
