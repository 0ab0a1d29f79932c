"""What ended long ago goes, by its user, an administrator, or itself; what is live and what a start needs stays."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairlead.journal.codec import encode_plain
from fairlead.journal.format import NOTE
from fairlead.journal.store import Journal
from fairlead.local.job_states import LIVE
from fairlead.runtime import Turn
from fairlead.service import retention
from fairlead.service.retention import Retention, forget_old_jobs, keep, prune_step

pytestmark = pytest.mark.real


def ended(served: Any, who: str = "", count: int = 1, text: str = "hello") -> list[str]:
    keys = [served.submit("/bin/echo", text, who=who, env={"TOKEN": "a-secret"}) for _ in range(count)]
    for key in keys:
        served.wait(key)
    return keys


def clean(served: Any, who: str = "", **body: Any) -> dict[str, Any]:
    answer = served.call("POST", "/api/v1/clean", {"older_than_ms": 0, **body}, who)
    assert answer.status == 200, answer.body
    return dict(answer.json)


def known(served: Any, key: str) -> bool:
    return bool(served.call("GET", f"/api/v1/jobs/{key}").status == 200)


def directory(served: Any, key: str) -> Path:
    return Path(served.place.machine.stdout_path(f"{key}-1")).parent


def settled(served: Any) -> None:
    """Orders to the machine are carried out one after the other: this one comes last."""
    served.wait(served.submit("/bin/true"))


def test_a_user_cleans_up_what_is_his(served: Any) -> None:
    """Of others nothing goes, of what is live neither; the output goes with the job."""
    clean(served)
    mine, others = ended(served, "bob", 2), ended(served, "alice")
    live = served.submit("/bin/sleep", "60", who="bob", grace_ms=0)
    said = clean(served, "bob", dry_run=True)
    assert said == {"jobs": 2, "bytes": said["bytes"], "records": 0}
    assert said["bytes"] > 2 * len("hello\n")
    assert all(known(served, key) for key in mine)
    assert clean(served, "bob", older_than_ms=3_600_000)["jobs"] == 0
    assert clean(served, "bob") == said
    settled(served)
    assert not any(known(served, key) or directory(served, key).exists() for key in mine)
    assert known(served, others[0])
    assert directory(served, others[0]).exists()
    assert served.show(live)["state"] in LIVE
    assert clean(served)["jobs"] >= 1, "an administrator cleans up everybody's"
    assert not known(served, others[0])
    served.call("POST", f"/api/v1/jobs/{live}/cancel", {"now": True})
    served.wait(live)


def test_by_itself_the_oldest_go_first(served: Any) -> None:
    """By their number and by their age; without a record where nothing has to go."""
    clean(served)
    keys = sorted(ended(served, count=5), key=lambda key: (served.show(key)["ended_at_ms"], int(key)))

    def look(**keep: int) -> int:
        def act(turn: Turn) -> int:
            forget_old_jobs(turn, served.place.local.jobs, Retention(**keep))
            return len(turn.entries)

        return int(served.place.runtime.do(act).result(10))

    assert look(jobs=5) == 0
    assert look(jobs=2) == 1
    assert [known(served, key) for key in keys] == [False, False, False, True, True]
    assert look(jobs_ms=3_600_000) == 0
    assert look(jobs_ms=0) == 1
    assert not any(known(served, key) for key in keys)


def test_an_environment_is_kept_no_longer_than_its_job(served: Any) -> None:
    """Its names stay for those who look; the book, and so every snapshot, has no value of it."""
    [key] = ended(served)
    assert served.show(key)["env"] == ["TOKEN"]
    assert b"a-secret" not in served.place.runtime.read(lambda _: served.place.runtime.books.dump()).result(10)
    waits = served.submit("/bin/true", resources={"cpu": 2**30}, env={"TOKEN": "a-secret"})
    assert b"a-secret" in served.place.runtime.read(lambda _: served.place.runtime.books.dump()).result(10)
    served.call("POST", f"/api/v1/jobs/{waits}/cancel", {})
    assert b"a-secret" not in served.place.runtime.read(lambda _: served.place.runtime.books.dump()).result(10)


async def test_nothing_goes_for_a_day_after_the_clock_went_forward_by_years(
    served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looks old may not be; it goes when that day is over."""
    ended(served)
    clock = served.place.runtime.clock
    monkeypatch.setattr(clock, "_jumped_at", clock._steady())
    assert "nothing old is removed for a day" in served.call("GET", "/api/v1/info").json["problems"][0]
    monkeypatch.setattr(retention, "LOOK_S", 0.01)
    for jumped in (True, False):
        keeping = asyncio.create_task(keep(served.place, Retention(jobs_ms=0, jobs=0)))
        await asyncio.sleep(0.5)
        keeping.cancel()
        assert bool(served.place.local.jobs.ended) == jumped
        monkeypatch.setattr(clock, "_jumped_at", None)


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    """30,000 records, one a millisecond, 200 bytes each; snapshots after 10,000, 20,000 and 25,000."""
    with Journal(tmp_path / "j.db") as made:
        for at_ms in range(1, 30_001):
            made.append(at_ms, NOTE, b"x" * 200)
            if at_ms in (10_000, 20_000, 25_000):
                made.save_snapshot(at_ms, at_ms, encode_plain({"scheduler": {}}))
        made.commit()
        yield made


def pruned(journal: Journal, before_ms: int, most_bytes: int) -> int:
    """Where history begins when there is nothing left to do; each step is bounded."""
    while went := prune_step(journal, before_ms, most_bytes):
        assert went <= 10_000
    return journal.history.first_seq


def test_records_go_by_age(journal: Journal) -> None:
    """Those that are older, but none that the next start needs."""
    assert pruned(journal, 0, 2**40) == 1
    assert pruned(journal, 4_000, 2**40) == 4_001
    assert pruned(journal, 30_000, 2**40) == 10_001
    assert journal.load_for_recovery().count == 5_000


def test_records_go_by_size(journal: Journal) -> None:
    """The oldest, until the rest is small enough, or needed; the room is used again."""
    journal.checkpoint()
    used, size = journal.history.used_bytes, journal.sizes().database_bytes
    begins = pruned(journal, 0, used * 3 // 4)
    assert 6_500 < begins < 9_000
    assert used * 2 // 3 < journal.history.used_bytes <= used * 3 // 4
    assert pruned(journal, 0, 1) == 10_001
    for at_ms in range(30_001, 38_001):
        journal.append(at_ms, NOTE, b"x" * 200)
    journal.commit()
    journal.checkpoint()
    assert journal.sizes().database_bytes <= size


def test_nothing_goes_without_a_snapshot(tmp_path: Path) -> None:
    """All of history is needed then."""
    with Journal(tmp_path / "j.db") as made:
        for at_ms in range(1, 100):
            made.append(at_ms, NOTE, b"x")
        made.commit()
        assert pruned(made, 1_000, 1) == 1
