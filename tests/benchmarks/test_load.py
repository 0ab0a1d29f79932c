"""The load harness asks each route of a real service, and another user reads meanwhile."""

from __future__ import annotations

import pytest
from benchmarks import load
from benchmarks.load import Waits, main, measure, request_of


def test_a_request_names_something_in_each_place() -> None:
    """What is there where that matters, else what is not."""
    assert request_of(("GET", "/api/v1/jobs/{key}/why"), "7") == ("GET", "/api/v1/jobs/7/why", None)
    assert request_of(("PUT", "/api/v1/quotas/{name}"), "7") == ("PUT", "/api/v1/quotas/none", b"{}")
    method, _, body = request_of(("POST", "/api/v1/jobs"), "7")
    assert method == "POST"
    assert body is not None
    assert body.count(b"/bin/true") == 20


@pytest.mark.thorough
@pytest.mark.real
@pytest.mark.timeout(180)
def test_a_route_is_flooded_while_another_user_reads(capsys: pytest.CaptureFixture[str]) -> None:
    """There are figures and answers; how good they are depends on the machine that this runs on."""
    measure(2.0, "api/v1/queues")
    [_, figures] = capsys.readouterr().out.splitlines()
    assert "GET /api/v1/queues" in figures
    assert " x 200" in figures
    assert "no reads" not in figures


def test_waits_beyond_the_machines_part_are_too_long() -> None:
    """And where nothing was read nothing is good."""
    slow, quick = [(False, 0.0, 0.15)] * 100, [(True, 0.0, 0.02)] * 100
    assert (Waits([*slow, *quick]).ok, Waits([*slow, *quick]).figures) == (False, " 150   20 ms")
    assert Waits([*slow, *((True, 0.0, 0.06) for _ in range(100))]).ok
    assert (Waits(slow).ok, Waits(slow).figures) == (False, "no reads at all")


@pytest.mark.thorough
@pytest.mark.real
@pytest.mark.timeout(180)
def test_a_route_that_made_others_wait_is_flooded_twice_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All three figures are shown."""
    monkeypatch.setattr(load, "BOUND_S", -10.0)
    assert not measure(0.5, "api/v1/queues")
    [_, figures] = capsys.readouterr().out.splitlines()
    assert figures.startswith("BAD ")
    assert figures.count(" ms") == 3


@pytest.mark.thorough
@pytest.mark.parametrize("words", [["abc"], ["0"], ["-1"], ["nan"], ["1", "no such route"]])
def test_what_measures_nothing_is_an_error(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not a traceback, and not "ok"."""
    monkeypatch.setattr("sys.argv", ["load", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert words[-1].removeprefix("-") in said
    assert "Traceback" not in said
