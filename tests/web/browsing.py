"""A service with pages, and a real browser that looks at them and minds what goes wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fairlead.client import Client
from fairlead.client.address import Address
from fairlead.client.errors import ClientError

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDED = "needs Chromium (Debian: apt-get install chromium); .ci/run installs it"
FAIRLEAD = [sys.executable, "-m", "fairlead.cli.main"]


class PagesService:
    """`fairlead up` with pages, in a process of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.socket, self.log = directory / "s", directory / "log"
        self._log = self.log.open("ab")
        self.environ = {**os.environ, "FAIRLEAD_SOCKET": str(self.socket)}
        command = [*FAIRLEAD, "up", "--state", str(directory / "state"), "--socket", str(self.socket), "--port", "0"]
        self.process = subprocess.Popen([*command, *options], stdout=self._log, stderr=self._log)
        self.client = Client(Address(socket=str(self.socket)))
        end = time.monotonic() + 50
        while True:
            try:
                self.url = self.client.ticket().url
                break
            except ClientError:
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < end, self.log.read_text()
                time.sleep(0.05)

    def way_in(self) -> str:
        """An address that opens the pages, once."""
        return f"{self.url}/enter?ticket={self.client.ticket().ticket}"

    def submit(self, *command: str, **fields: Any) -> str:
        return self.client.submit([{"command": list(command), "cwd": "/", **fields}]).jobs[0].key

    def close(self) -> None:
        for job in self.client.jobs(state=("waiting", "running", "suspended", "stopping")):
            with suppress(ClientError):  # It may have ended meanwhile.
                self.client.cancel(job.key, now=True)
        end = time.monotonic() + 50
        while any(self.client.jobs(state=("running", "stopping"))) and time.monotonic() < end:
            time.sleep(0.05)
        self.process.terminate()
        self.process.wait(50)
        self._log.close()


class Watched:
    """A page in the browser, and everything that is wrong with it."""

    def __init__(self, page: Any, own: str) -> None:
        self.page, self.wrong = page, list[str]()
        host = urlsplit(own).netloc
        page.on("console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda asked: None if _is_own(asked.url, host) else self.wrong.append(f"asked {asked.url}"))
        page.set_default_timeout(60_000)

    def findings(self) -> list[str]:
        """What axe-core finds that keeps people from using it: serious and critical."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]

    def check(self) -> None:
        """Nothing went wrong on the way here."""
        found = [*self.wrong, *self.findings()]
        assert not found, found


def _is_own(url: str, host: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob", "about") or parts.netloc == host


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    if CHROMIUM is None:
        pytest.skip(NEEDED)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield running
        finally:
            running.close()
