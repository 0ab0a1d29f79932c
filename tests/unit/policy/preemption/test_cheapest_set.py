"""The cheapest set of work to stop: held against every set there is, and what many candidates are cut short to."""

from __future__ import annotations

import random
from itertools import chain, combinations

import pytest
from loose_books import application, ask, tree

from fairlead.core.books.asks import Ask
from fairlead.policy.preemption import cheapest_set
from fairlead.policy.preemption.cheapest_set import Need, cheapest, covers, harm, standing

LEAF = tree("root.a")["root.a"]


def work(chance: random.Random, count: int) -> list[Ask]:
    made = []
    for number in range(count):
        amounts = {"vcore": chance.randint(0, 3), "memory": chance.randint(0, 3)}
        made.append(ask(application(LEAF, f"w{number}"), f"w{number}", amounts, priority=chance.randint(0, 2)))
        made[-1].allocated_ms, made[-1].seq = chance.randint(0, 3), number
    return made


def needs_of(chance: random.Random, candidates: list[Ask]) -> list[Need]:
    """Up to three needs, each with those of the candidates that help there."""
    return [
        (
            {name: chance.randint(1, 5) for name in chance.sample(["vcore", "memory"], chance.randint(1, 2))},
            {each: None for each in candidates if chance.random() < 0.8},
        )
        for _ in range(chance.randint(1, 3))
    ]


@pytest.mark.parametrize("seed", range(60))
def test_no_set_that_meets_every_need_is_cheaper(seed: int) -> None:
    chance = random.Random(seed)
    candidates = work(chance, chance.randint(1, 8))
    needs = needs_of(chance, candidates)
    found = cheapest(needs, candidates)
    sets = chain.from_iterable(combinations(candidates, size) for size in range(1, len(candidates) + 1))
    enough = [each for each in sets if covers(each, needs)]
    assert bool(found) == bool(enough)
    if enough:
        assert covers(found, needs)
        assert harm(found) == min(map(harm, enough))
        assert found == tuple(sorted(found, key=standing))


@pytest.mark.plain
@pytest.mark.parametrize("seed", range(40))
def test_of_too_many_sets_one_is_taken_that_can_spare_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cheapest_set, "COMBINATIONS_MAX", 3)
    chance = random.Random(seed)
    candidates = work(chance, 9)
    needs = needs_of(chance, candidates)
    found = cheapest(needs, candidates)
    assert bool(found) == covers(candidates, needs)
    for spared in found:
        assert not covers([each for each in found if each is not spared], needs)


def test_where_nothing_is_missing_or_all_is_not_enough_nothing_goes() -> None:
    [one] = work(random.Random(0), 1)
    assert cheapest([], [one]) == ()
    assert cheapest([({}, {one: None})], [one]) == ()
    assert cheapest([({"vcore": 99}, {one: None})], [one]) == ()
