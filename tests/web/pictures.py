"""Pictures of every page, to be looked at: wide and on a phone, light and dark, of a small and a large service.

    python -m web.pictures FOLDER [empty] [forty] [large]      (make pictures)

`empty` has no job, `forty` real processes of some queues, `large` 5,000 made-up nodes and 50,000 asks (it takes some
minutes). Each picture is FOLDER/WHICH-PAGE-HOW.png.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from web.browsing import PagesService, browser

PAGES = ("/line", "/now", "/jobs", "/queues", "/submit", "/past", "/policy")
HOW = {
    "wide": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
    "phone-dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
TRIES = 8
QUEUES = ("root.interactive", "root.research.team-a", "root.research.team-b", "root.batch", "root.default")
Shown = tuple[str, Callable[[], str], str]
"""Where the pages are, what opens them, and the key of a job that waits (or none)."""


@contextmanager
def small(jobs: int) -> Iterator[Shown]:
    """A service with so many jobs; some end, one is stopped for another."""
    directory = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    has = ("--resource", "cpu=16", "--resource", "memory=64Gi", "--resource", "gpu=4", "--pages-port", "0")
    service = PagesService(directory, *has)
    for number in range(jobs):
        gpus = {"gpu": 1} if number % 5 == 1 else {}
        service.submit(
            "sh",
            "-c",
            f"for i in $(seq {3 + 40 * (number % 4)}); do echo step $i; sleep 1; done",
            name=f"{('train', 'render', 'index', 'fold')[number % 4]}-{number}",
            queue=QUEUES[(number * 3) % 5],
            priority=number % 4,
            resources={"cpu": 1 + number % 3, "memory": (1 + number % 6) * 2**30, **gpus},
            time_limit_ms=600_000 * (1 + number % 3),
            grace_ms=500,
        )
        if number % 10 == 9:
            time.sleep(2)
    waits = next((job.key for job in service.client.jobs(state="waiting")), "")
    try:
        yield service.url, service.way_in, waits
    finally:
        service.close()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def large() -> Iterator[Shown]:
    """A service as large as it gets, with made-up nodes and runs."""
    from benchmarks.pages import Made

    directory = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    made = Made(directory, 5_000, 50_000)
    try:
        yield made.told["pages"], made.way_in, made.client.line(limit=1).line[0].key
    finally:
        made.close()
        shutil.rmtree(directory, ignore_errors=True)


KINDS: dict[str, Callable[[], Any]] = {"empty": lambda: small(0), "forty": lambda: small(40), "large": large}


def take(folder: Path, which: str) -> None:
    """All pictures of one service."""
    with KINDS[which]() as (url, way_in, waits), browser() as chromium:
        for how, settings in HOW.items():
            context = chromium.new_context(**settings)
            page = context.new_page()
            page.set_default_timeout(120_000)
            page.goto(way_in())
            page.wait_for_url("**/line")
            for path in (*PAGES, *([f"/job/{waits}"] if waits else [])):
                page.goto(url + path)
                for _ in range(TRIES):
                    if page.locator("#content").count():
                        break
                    page.get_by_role("link", name="Try again").click()  # The service takes long to answer.
                page.wait_for_selector("#content")
                page.wait_for_timeout(4000 if path in ("/line", "/past") or path.startswith("/job") else 1500)
                name = path.split("/")[1]
                page.screenshot(path=folder / f"{which}-{name}-{how}.png", full_page=True)
            context.close()


def main() -> None:
    """Take those that are named, or all."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for which in sys.argv[2:] or KINDS:
        take(folder, which)
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")


if __name__ == "__main__":
    main()
