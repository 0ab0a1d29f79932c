"""What do open pages cost the scheduler, and how soon do they show what is so?

    python -m benchmarks.pages [NODES ASKS PAGES]      (make bench-pages)

Starts a service with made-up nodes and runs (5,000 and 50,000 asks), changes something some times a second, and
measures the processor time of the service with no page open and with so many (20) in a real Chromium: what the pages
add to it, as a part of one processor. Then how long a page takes to its first rows, and a change until it is seen, in
the page and drawn (by one browser for all, on the same machine); and the memory of service and pages. Processor time
and not the clock, so that what else runs on the machine counts little.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.made_up import drafts
from fairlead.client import Client
from fairlead.client.address import Address

SECONDS = 20.0
CHANGES_A_SECOND = 5
SETTLES, LOOK_S, IDLE = 60, 5.0, 0.1
"""So often, so long it is looked at, until it uses no more than this part of a processor."""
PATIENCE_MS, MIB = 300_000, 2**20
PATHS = ("/line", "/line", "/now", "/queues", "/line?after=50")


class Made:
    """The service, in a process of its own."""

    def __init__(self, directory: Path, nodes: int, asks: int) -> None:
        command = [sys.executable, "-m", "benchmarks.made_up", str(directory), str(nodes), str(asks)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.told = self._read()
        self.client = Client(Address(socket=self.told["socket"]), timeout_s=120)

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the service has ended; see above")
        return json.loads(line)

    def used(self) -> dict[str, float]:
        """Its processor time in seconds and its memory in bytes."""
        assert self.process.stdin is not None
        print("", file=self.process.stdin, flush=True)
        found: dict[str, float] = self._read()
        return found

    def way_in(self) -> str:
        return f"{self.told['pages']}/enter?ticket={self.client.ticket().ticket}"

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


def settle(made: Made) -> None:
    """Wait until what so many submissions leave to be done is done: a snapshot, and notes of what each waits for."""
    for _ in range(SETTLES):
        before = made.used()["cpu_s"]
        time.sleep(LOOK_S)
        if made.used()["cpu_s"] - before < IDLE * LOOK_S:
            return
    say("the service is still busy with what was submitted")


def cost(made: Made, seconds: float) -> float:
    """The part of a processor that the service uses while something changes some times a second."""
    over = threading.Event()

    def change() -> None:
        number = 0
        while not over.is_set():
            number += 1
            [job] = made.client.submit(drafts(number, number + 1)).jobs
            made.client.cancel(job.key)
            over.wait(1 / CHANGES_A_SECOND)

    changing = threading.Thread(target=change)
    before, began = made.used()["cpu_s"], time.monotonic()
    changing.start()
    time.sleep(seconds)
    part = (made.used()["cpu_s"] - before) / (time.monotonic() - began)
    over.set()
    changing.join()
    return part


def memory_of(pid: int) -> int:
    """Of the children of a process, in bytes; what they share with others counts in parts."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            with contextlib.suppress(OSError):  # It has ended meanwhile.
                rows = Path(f"/proc/{child}/smaps_rollup").read_text().splitlines()
                total += next(int(row.split()[1]) * 1024 for row in rows if row.startswith("Pss:"))
    return total


def measure(nodes: int, asks: int, count: int) -> None:
    """All of it; each figure is printed as soon as it is known."""
    from playwright.sync_api import sync_playwright

    directory = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    began = time.monotonic()
    made = Made(directory, nodes, asks)
    filled = f"{time.monotonic() - began:.0f} s, {made.used()['cpu_s']:.0f} s of them on a processor"
    say(f"{nodes} nodes, {asks} asks, {count} pages; filled in {filled}")
    chromium = shutil.which("chromium") or "chromium"
    try:
        settle(made)
        alone, memory = cost(made, SECONDS), made.used()["memory"]
        say(f"service alone: {alone:.1%} of a processor")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            context = browser.new_context(viewport={"width": 1400, "height": 900})
            first = context.new_page()
            first.set_default_timeout(PATIENCE_MS)
            first.goto(made.way_in())
            first.wait_for_selector("tr[data-k]")
            rows = []
            for number in range(1, count):
                page = context.new_page()
                page.set_default_timeout(PATIENCE_MS)
                begun = time.monotonic()
                page.goto(made.told["pages"] + PATHS[number % len(PATHS)])
                page.wait_for_selector("tr[data-k], #heat")
                rows.append(time.monotonic() - begun)
            if rows:
                say(f"first rows: median {statistics.median(rows):.2f} s, longest {max(rows):.2f} s")
            looked = cost(made, SECONDS)
            say(f"with the pages open: {looked:.1%} of a processor, {looked - alone:+.1%}")
            seen = [_seen(made, first) for _ in range(5)]
            for what, times in zip(("in an open page", "drawn there"), zip(*seen, strict=True), strict=True):
                say(f"a change is {what} after {statistics.median(times):.2f} s (median), {max(times):.2f} at most")
            more, beside = (made.used()["memory"] - memory) / MIB, memory_of(int(made.told["pid"])) / MIB
            say(f"memory: service {more:+.0f} MiB, the pages {beside:.0f} MiB")
            browser.close()
    finally:
        made.close()
        shutil.rmtree(directory, ignore_errors=True)


def say(words: str) -> None:
    """A figure, with how much else the machine has to do."""
    print(f"{words} (load of the machine {os.getloadavg()[0]:.1f})", flush=True)


WATCH = """([key, wanted]) => new Promise((resolve) => {
    const isThere = () =>
        [...document.querySelectorAll(`tr[data-k="${key}"] .number`)].some((each) => each.textContent === wanted);
    const told = () => {
        if (!isThere()) return false;
        const there = Date.now();
        requestAnimationFrame(() => resolve([there, Date.now()]));
        return true;
    };
    if (told()) return;
    const watching = new MutationObserver(() => { if (told()) watching.disconnect(); });
    watching.observe(document.querySelector("#p-line"), { subtree: true, childList: true, characterData: true });
})"""


def _seen(made: Made, page: Any) -> tuple[float, float]:
    """How long until a change at the front of the line is in that page, and until it is drawn: all pages are drawn by
    one browser, beside the service.
    """
    time.sleep(12)
    first = made.client.line(limit=1).line[0]
    priority = made.client.job(first.key).priority
    wanted = str(first.effective + 1)
    begun = time.time()
    made.client.change(first.key, priority=priority + 1)
    there, drawn = page.evaluate(WATCH, [first.key, wanted])
    return there / 1000 - begun, drawn / 1000 - begun


def main() -> None:
    """Measure once."""
    nodes, asks, count = ([int(each) for each in sys.argv[1:4]] or [5_000, 50_000, 20])[:3]
    measure(nodes, asks, count)


if __name__ == "__main__":
    main()
