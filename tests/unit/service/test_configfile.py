"""The queue file that a service watches: what came of its newest text, and when it is tried again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlead.config import usable
from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import AddApplication, RemoveApplication
from fairlead.core.model.specs import ApplicationSpec
from fairlead.runtime import Entry, Runtime, Turn
from fairlead.runtime.configurations import configure
from fairlead.service.configfile import ConfigFile

FLAT = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
DEEP = FLAT.replace("{name: default}]", "{name: default, queues: [{name: day}]}]")


WAIT_S = 10.0


class Nowhere:
    """A place where nothing is, and that keeps nothing."""

    def load(self, state: Mapping[str, Any] | None) -> None: ...

    def dump(self) -> Mapping[str, Any]:
        return {}

    def apply(self, record: Any, at_ms: int) -> None: ...

    def follow(self, decisions: Sequence[Decision], at_ms: int) -> None: ...

    def settle(self, turn: Turn) -> None: ...

    def act(self, entries: Sequence[Entry]) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    runtime = Runtime(tmp_path / "journal.db", Nowhere(), version="1", pid=1)
    runtime.start()
    yield runtime
    runtime.close()


@pytest.fixture
def refused(runtime: Runtime, tmp_path: Path) -> ConfigFile:
    """One whose newest text makes a parent of a queue in which there is work."""
    path = tmp_path / "queues.yaml"
    path.write_text(FLAT)
    file = ConfigFile(path)
    runtime.do(lambda turn: file.begin(turn, file.read())).result(WAIT_S)
    done(runtime, lambda turn: turn.event(AddApplication(ApplicationSpec(id="j", queue="root.default"))))
    path.write_text(DEEP)
    seen(file, runtime)
    assert (state(file, runtime), "would become a parent" in file.problem()) == ("refused", True)
    return file


def seen(file: ConfigFile, runtime: Runtime) -> None:
    """It was looked at often enough."""

    async def look() -> None:
        for _ in range(3):
            await file._look(runtime)

    asyncio.run(look())


def state(file: ConfigFile, runtime: Runtime) -> str:
    current = runtime.books.configurations.current
    assert current is not None
    return file.status(current.checksum).state


def done(runtime: Runtime, act: Callable[[Any], Any]) -> None:
    runtime.do(act).result(WAIT_S)


def test_what_was_refused_is_tried_again_when_it_is_saved_again(refused: ConfigFile, runtime: Runtime) -> None:
    """The work that was in the way may have ended: that is what the refusal said to wait for."""
    done(runtime, lambda turn: turn.event(RemoveApplication("j")))
    seen(refused, runtime)
    assert state(refused, runtime) == "refused"
    os.utime(refused.path, ns=(1, 1))
    seen(refused, runtime)
    assert (state(refused, runtime), refused.problem()) == ("in-force", "")


def test_what_was_refused_and_applied_in_another_way_is_no_problem_any_more(
    refused: ConfigFile, runtime: Runtime
) -> None:
    """Its text is what is in force."""
    done(runtime, lambda turn: turn.event(RemoveApplication("j")))
    done(runtime, lambda turn: configure(turn, usable(DEEP), who="ann", source="api"))
    seen(refused, runtime)
    assert (state(refused, runtime), refused.problem()) == ("in-force", "")


def begun(runtime: Runtime, path: Path) -> ConfigFile:
    """The file, where a service starts with it."""
    file = ConfigFile(path)
    done(runtime, lambda turn: file.begin(turn, file.read()))
    return file


def test_what_it_said_after_it_was_applied_in_another_way_is_not_put_back_by_a_restart(
    runtime: Runtime, tmp_path: Path
) -> None:
    """Somebody applies a change, writes it into the file too, and applies another one: that one stays."""
    path = tmp_path / "queues.yaml"
    path.write_text(FLAT)
    file = begun(runtime, path)
    night, week = (FLAT.replace("default}]", f"default}}, {{name: {name}}}]") for name in ("night", "week"))
    done(runtime, lambda turn: configure(turn, usable(night), who="ann", source="api"))
    path.write_text(night)
    seen(file, runtime)
    assert state(file, runtime) == "in-force"
    done(runtime, lambda turn: configure(turn, usable(week), who="ann", source="api"))
    assert state(begun(runtime, path), runtime) == "differs"
    history = [(each.number, each.source[:4], each.origin) for each in runtime.books.configurations]
    assert history == [(1, "file", 1), (2, "api", 2), (3, "file", 2), (4, "api", 4)]


def test_a_start_with_a_file_that_says_what_is_in_force_counts_as_its_text(runtime: Runtime, tmp_path: Path) -> None:
    """What is applied after that is not undone by the next start with the same file."""
    path = tmp_path / "queues.yaml"
    path.write_text(FLAT)
    done(runtime, lambda turn: configure(turn, usable(FLAT), who="ann", source="api"))
    assert state(begun(runtime, path), runtime) == "in-force"
    done(runtime, lambda turn: configure(turn, usable(DEEP), who="ann", source="api"))
    assert state(begun(runtime, path), runtime) == "differs"
    assert [each.source[:4] for each in runtime.books.configurations] == ["api", "file", "api"]


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_what_is_odd_in_it_is_said_in_the_log_and_in_its_status(
    runtime: Runtime, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At the start, and each time that it has changed: a limit of `cpu` bounds nobody."""
    path = tmp_path / "queues.yaml"
    path.write_text(FLAT)
    file = ConfigFile(path)
    runtime.do(lambda turn: file.begin(turn, file.read())).result(WAIT_S)
    assert not _warnings(caplog)
    path.write_text(FLAT.replace("{name: default}", "{name: default, resources: {max: {cpu: 2}}}"))
    seen(file, runtime)
    said = "warning: nothing asks for a resource named cpu; did you mean vcore?"
    assert [message.partition("cpu: ")[2] for message in _warnings(caplog)] == [said]
    assert (state(file, runtime), file.problem()) == ("in-force", "")
    current = runtime.books.configurations.current
    assert current is not None
    assert [problem.severity for problem in file.status(current.checksum).problems] == ["warning"]
