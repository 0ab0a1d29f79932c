"""The pages of a recorded course: what was so at any moment of it, and what was decided then."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web.browsing import CHROMIUM, NEEDED, Watched

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]
FAIRLEAD = [sys.executable, "-m", "fairlead.cli.main"]
TASKS = """job,queue,user,time,run,resources.vcore
a,root.low,ann,0,100,4
b,root.high,bob,10,50,4
"""
QUEUES = """partitions:
- name: default
  preemption: {rule: priority}
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: low}
    - {name: high, properties: {priority.offset: "10"}}
"""


@pytest.fixture
def way_in(tmp_path: Path) -> Iterator[str]:
    """The address that `sim view` prints, of a course in which the second job stops the first."""
    if CHROMIUM is None:
        pytest.skip(NEEDED)
    (tmp_path / "tasks.csv").write_text(TASKS)
    (tmp_path / "queues.yaml").write_text(QUEUES)
    words = ["sim", "run", "-w", "tasks.csv", "--nodes", "1x cpu=4", "--config", "queues.yaml", "--record", "course.db"]
    subprocess.run([*FAIRLEAD, *words], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    showing = [*FAIRLEAD, "sim", "view", "course.db", "--print"]
    with subprocess.Popen(showing, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0


def _go(page: Any, seconds: int) -> None:
    page.get_by_role("slider", name="Moment").evaluate(
        "(slider, s) => { slider.value = Number(slider.min) + 1000 * s;"
        " slider.dispatchEvent(new Event('change', {bubbles: true})); }",
        seconds,
    )


def test_the_slider_goes_to_any_moment_and_what_happened_stands_beside(way_in: str, chromium: Any) -> None:
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    watched = Watched(context.new_page(), way_in)
    page, url = watched.page, way_in.partition("/enter")[0]
    page.goto(way_in)
    page.wait_for_url("**/line")
    _go(page, 5)
    page.locator(".runs li[data-k='a-2']").wait_for()
    _go(page, 30)
    page.locator("tr[data-k='a-2']").wait_for()
    page.locator(".runs li[data-k='b-3']").wait_for()
    watched.check()
    page.locator("tr[data-k='a-2']").get_by_role("link").click()
    page.wait_for_url("**/job/a-2")
    page.locator("#p-happened", has_text="was told to stop").wait_for()
    watched.check()
    page.goto(f"{url}/happened")
    told = page.locator("#p-happened tr", has_text="to make room for b-3 (that one has a higher priority)")
    told.wait_for()
    watched.check()
    page.goto(f"{url}/past")
    page.locator("#p-gantt a", has_text="b-3 of bob in high: running").wait_for()
    page.locator("#p-gantt .arc", has_text="was stopped for b-3").wait_for(state="attached")
    page.locator("#p-queues tr", has_text="high").wait_for()
    watched.check()
    _go(page, 150)
    page.locator("#p-gantt a", has_text="b-3 of bob in high: ended, 50s").wait_for()
    _go(page, 30)
    for name in ("now", "queues"):
        page.goto(f"{url}/{name}")
        page.locator(".course").wait_for()
        watched.check()
    page.get_by_label("How fast it plays").select_option("60")
    page.get_by_role("button", name="Play").click()
    page.locator(".course", has_text="2m 40s after its begin").wait_for()
    _go(page, 30)
    page.get_by_text("30s after its begin").wait_for()
    page.get_by_role("button", name="To the decision before").click()
    page.get_by_text("10s after its begin").wait_for()
    context.close()
