"""Amounts and durations as people type them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cli.app import USAGE, Failure
from fairlead.cli.values import parse_amount, parse_duration, parse_pairs, parse_resources, parse_size, time_limit


@pytest.mark.parametrize(
    ("text", "milli"), [("2", 2000), ("0.5", 500), ("500m", 500), ("1.25", 1250), ("0", 0), ("0.001", 1)]
)
def test_cpu_is_in_thousandths(text: str, milli: int) -> None:
    """Cores, with a decimal point or in thousandths, become thousandths."""
    assert parse_amount("vcore", text, "--cpu") == milli


@pytest.mark.parametrize(
    ("text", "size"), [("4Gi", 4 * 2**30), ("512Mi", 512 * 2**20), ("1.5Gi", 3 * 2**29), ("2G", 2 * 10**9), ("0", 0)]
)
def test_memory_is_in_bytes(text: str, size: int) -> None:
    """Memory with a unit becomes bytes."""
    assert parse_amount("memory", text, "--memory") == size


@pytest.mark.parametrize("text", ["2x", "", "-1", "1,5", "two", "0.0005", "1e3", "0x10", "NaN", "1.5m", "."])
def test_a_text_that_is_no_amount_of_cpu_is_refused_with_examples(text: str) -> None:
    """The sentence names the option, the text, and what to write instead."""
    with pytest.raises(Failure, match=r"^--cpu: ") as caught:
        parse_amount("vcore", text, "--cpu")
    assert caught.value.status == USAGE
    assert "500m" in caught.value.message
    assert repr(text) in caught.value.message


def test_memory_with_an_unknown_unit_is_refused_with_examples() -> None:
    """4GB is not guessed at."""
    with pytest.raises(Failure, match="4Gi"):
        parse_amount("memory", "4GB", "--memory")


def test_a_few_bytes_of_memory_are_taken_for_a_missing_unit() -> None:
    """Nobody means four bytes."""
    with pytest.raises(Failure, match="did you mean 4Gi"):
        parse_amount("memory", "4", "--memory")
    for text in ("16Ki", "500k"):
        with pytest.raises(Failure) as caught:
            parse_amount("memory", text, "--memory")
        assert caught.value.message.endswith("too little to run anything; write 1Mi or more")
        assert parse_size(text, "--keep-free") in (16 << 10, 500_000)


def test_an_amount_beyond_64_bits_is_refused() -> None:
    """With the largest one possible, also when it is written with a point."""
    for text in ("9223372036854775808", "99999999999Gi", "99999999999999999999.0"):
        with pytest.raises(Failure, match="9223372036854775807"):
            parse_amount("licence", text, "--resource")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("90", 90_000),
        ("90s", 90_000),
        ("10m", 600_000),
        ("2h", 7_200_000),
        ("1.5h", 5_400_000),
        ("1h30m", 5_400_000),
        ("1d", 86_400_000),
        ("500ms", 500),
        ("1.5s", 1500),
        ("0.25", 250),
        ("1m 30s", 90_000),
        ("0", 0),
    ],
)
def test_durations_are_in_milliseconds(text: str, ms: int) -> None:
    """Plain numbers are seconds; units may be combined."""
    assert parse_duration(text, "--grace") == ms


@pytest.mark.parametrize("text", ["", "-5", "5x", "m", "1h30", "1s1h", "inf", "1.5x", "0.0001"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    """The sentence names the option."""
    with pytest.raises(Failure, match=r"^--grace: "):
        parse_duration(text, "--grace")


@given(st.text())
def test_no_text_makes_anything_but_a_failure(text: str) -> None:
    """Whatever is typed, the answer is a number or a sentence."""
    for parse in (
        lambda t: parse_amount("vcore", t, "x"),
        lambda t: parse_amount("memory", t, "x"),
        lambda t: parse_duration(t, "x"),
    ):
        with suppress(Failure):
            assert parse(text) >= 0


@pytest.mark.parametrize("text", ["novalue", "=1", " =1"])
def test_a_pair_needs_a_name_and_an_equals_sign(text: str) -> None:
    """The sentence shows how."""
    with pytest.raises(Failure, match="licence=1"):
        parse_pairs([text], "--resource", "licence=1")


def test_a_pair_given_twice_is_refused() -> None:
    """The second would silently win otherwise."""
    with pytest.raises(Failure, match="A is given twice"):
        parse_pairs(["A=1", "A=2"], "--env", "SEED=1")


def test_a_value_may_contain_an_equals_sign() -> None:
    """Only the first one divides."""
    assert parse_pairs(["OPTS=-a=b"], "--env", "SEED=1") == {"OPTS": "-a=b"}


def test_resources_are_collected_without_zeros() -> None:
    """A zero asks for nothing."""
    assert parse_resources("2", "1Gi", 0, ["licence=3"]) == {"vcore": 2000, "memory": 2**30, "licence": 3}


def test_a_resource_named_by_two_options_is_refused() -> None:
    """--gpu 1 --resource gpu=2 is a contradiction."""
    with pytest.raises(Failure, match="gpu is given twice"):
        parse_resources(None, None, 1, ["gpu=2"])
    with pytest.raises(Failure, match="cpu is given twice"):
        parse_resources("1", None, None, ["cpu=2"])


def test_cpu_is_the_same_resource_as_vcore() -> None:
    """In the queue file it is vcore; nobody who declares `cpu=4` means a second resource."""
    assert parse_resources(None, None, None, ["cpu=4"]) == {"vcore": 4000}


@pytest.mark.parametrize(
    ("words", "declared"),
    [
        (("--resource", "gpu=0"), {"gpu": 0}),
        (("--resource", "gpu=0", "--resource", "cpu=2"), {"gpu": 0, "vcore": 2000}),
        (("--resource", "none"), None),
        ((), {}),
    ],
)
def test_a_machine_may_be_declared_to_have_none_of_something(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], declared: dict[str, int] | None
) -> None:
    """Its GPUs are for others: without that 0 what is found counted, or what an earlier start had declared."""
    started: list[Any] = []
    monkeypatch.setattr("fairlead.service.serve.serve", lambda options: started.append(options) or 0)
    assert run("up", *words).exit_code == 0
    assert started[0].resources == declared


@pytest.mark.parametrize(
    ("text", "where", "is_person", "told"),
    [
        ("10", "--time-limit", True, "fairlead: --time-limit: 10 is 10s; for minutes write 10m\n"),
        ("10", "--time-limit", False, ""),
        ("10s", "--time-limit", True, ""),
        ("10", "jobs.yaml:1:3: time_limit", True, ""),
    ],
)
def test_a_person_is_told_that_a_number_alone_is_seconds(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    where: str,
    is_person: bool,
    told: str,
) -> None:
    """For Slurm it is minutes: a job of ten minutes was ended after ten seconds."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_person)
    assert time_limit(text, where) == 10_000
    assert capsys.readouterr().err == told
