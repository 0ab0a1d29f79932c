"""Which devices claims get on a node, beside a search that tries everything."""

from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import pytest
from seeds import seeds
from testbed.devices import claim, device, device_slice, request

from fairlead.core.model.constraints import NODE_NAME
from fairlead.kubernetes.device_objects import ResourceClaim, ResourceSlice
from fairlead.kubernetes.devices.allocator import Answer, NoAnswer, allocate
from fairlead.kubernetes.devices.inventory import Device, Inventory
from fairlead.kubernetes.devices.wishes import NotUnderstood, Option, Shape, Wish, wish_of


def inventory(*slices: dict[str, Any]) -> Inventory:
    found = Inventory()
    for each in slices:
        found.put(msgspec.convert(each, ResourceSlice))
    return found


def shape(*claims: dict[str, Any]) -> Shape:
    return tuple(wish_of(msgspec.convert(each, ResourceClaim).spec) for each in claims)


def suits(option: Option, of: Device) -> bool:
    said = [of.says(expression) for expression in option.selectors]
    for each in said:
        if isinstance(each, str):
            raise NoAnswer(each)
    return all(said)


def answer(found: Inventory, wanted: Shape, *taken: str, node: str = "n", **labels: str) -> Answer | None:
    pools = found.pools(node, {NODE_NAME: node, **labels})
    return allocate(wanted, pools, {key for pool in pools for d in pool.devices if (key := d.key)[2] in taken}, suits)


def names(given: Answer | None) -> list[list[str]] | None:
    return [[g.device.key[2] for g in of_claim] for of_claim in given] if given is not None else None


FOUR = [device(f"d{i}", "big" if i > 1 else "small") for i in range(4)]
BIG = 'device.attributes["gpu.example.com"].model == "big"'


def test_so_many_of_those_that_suit_and_are_free() -> None:
    found = inventory(device_slice("n", *FOUR))
    assert names(answer(found, shape(claim("a", request("x", "gpu", 2))))) == [["d0", "d1"]]
    assert names(answer(found, shape(claim("a", request("x", "gpu", 2, BIG))))) == [["d2", "d3"]]
    assert names(answer(found, shape(claim("a", request("x", "gpu", 2, BIG))), "d2")) is None
    assert names(answer(found, shape(claim("a")), node="other")) is None
    # The second claim gets what the first leaves, and the first gives way where it can.
    assert names(answer(found, shape(claim("a", request("x", "gpu", 2)), claim("b", request())))) == [
        ["d0", "d1"],
        ["d2"],
    ]
    assert (
        names(answer(found, shape(claim("a", request("x", "gpu", 2, BIG)), claim("b", request("x", "gpu", 1, BIG)))))
        is None
    )


def test_all_of_them_means_every_one() -> None:
    found = inventory(device_slice("n", *FOUR))
    wanted = shape(claim("a", request("x", "gpu", 0, BIG)))
    assert names(answer(found, wanted)) == [["d2", "d3"]]
    assert answer(found, wanted, "d3") is None
    assert answer(inventory(device_slice("n", *FOUR[:2])), wanted) is None
    updating = device_slice("n", *FOUR)
    updating["spec"]["pool"]["resourceSliceCount"] = 2
    with pytest.raises(NoAnswer, match="being updated"):
        answer(inventory(updating), wanted)


def test_the_first_alternative_that_can_be_had() -> None:
    found = inventory(device_slice("n", *FOUR))
    several = {"name": "x", "firstAvailable": [
        {"name": "large", "deviceClassName": "gpu", "count": 3, "selectors": [{"cel": {"expression": BIG}}]},
        {"name": "two", "deviceClassName": "gpu", "count": 2},
    ]}  # fmt: skip
    given = answer(found, shape(claim("a", several)))
    assert given is not None
    assert [(g.option.name, g.device.key[2]) for g in given[0]] == [("x/two", "d0"), ("x/two", "d1")]


def test_devices_that_have_something_in_common() -> None:
    found = inventory(device_slice("n", *FOUR))
    same = {"matchAttribute": "gpu.example.com/model"}
    wanted = shape(claim("a", request("x"), request("y"), constraints=[same]))
    assert names(answer(found, wanted)) == [["d0", "d1"]]
    assert names(answer(found, wanted, "d0")) == [["d2", "d3"]]
    assert answer(found, wanted, "d0", "d2") is None
    one = {"matchAttribute": "gpu.example.com/model", "requests": ["x"]}
    assert names(answer(found, shape(claim("a", request("x"), request("y"), constraints=[one])), "d0", "d2")) == [
        ["d1", "d3"]
    ]
    missing = {"matchAttribute": "gpu.example.com/numa"}
    assert answer(found, shape(claim("a", constraints=[missing]))) is None


def test_observers_take_nothing_away() -> None:
    found = inventory(device_slice("n", *FOUR[:1]))
    watch = request("x", "gpu", 1, adminAccess=True)
    assert names(answer(found, shape(claim("a", watch)), "d0")) == [["d0"]]
    assert answer(found, shape(claim("a", watch, request("y")))) is None


def test_only_the_newest_generation_and_names_that_are_one() -> None:
    old, new = device_slice("n", *FOUR), device_slice("n", FOUR[3], name="newer", generation=2)
    assert names(answer(inventory(old, new), shape(claim("a")))) == [["d3"]]
    twice = device_slice("n", FOUR[0], FOUR[0])
    with pytest.raises(NoAnswer, match="one name"):
        answer(inventory(twice), shape(claim("a")))


def test_nothing_is_given_of_a_pool_that_is_being_updated() -> None:
    """Whichever nodes its slices are for; what is in other pools is given."""
    one = device_slice("n", FOUR[0], name="s-1")
    one["spec"]["pool"] = {"name": "wide", "generation": 1, "resourceSliceCount": 2}
    other = device_slice("m", FOUR[1], name="s-2")
    other["spec"]["pool"] = one["spec"]["pool"]
    found = inventory(one)
    with pytest.raises(NoAnswer, match="wide is being updated"):
        answer(found, shape(claim("a")))
    assert found.put(msgspec.convert(other, ResourceSlice)) == ("m", "n")
    assert names(answer(found, shape(claim("a")))) == [["d0"]]
    newer = device_slice("m", FOUR[1], name="s-3", generation=2)
    newer["spec"]["pool"] = {"name": "wide", "generation": 2, "resourceSliceCount": 2}
    assert found.put(msgspec.convert(newer, ResourceSlice)) == ("m", "n")
    assert answer(found, shape(claim("a"))) is None, "its devices are about to go"
    found.put(msgspec.convert(device_slice("own", FOUR[2], name="s-4", nodeName="n"), ResourceSlice))
    assert names(answer(found, shape(claim("a")))) == [["d2"]]
    assert found.drop("s-3") == ("m", "n")
    assert names(answer(found, shape(claim("a", request("x", "gpu", 2))))) == [["d2", "d0"]]


def test_what_is_not_understood_is_given_to_nobody() -> None:
    part = device("d0", consumesCounters=[{"counterSet": "c", "counters": {}}])
    some = inventory(device_slice("n", part, FOUR[1]))
    assert names(answer(some, shape(claim("a")))) == [["d1"]]
    assert answer(some, shape(claim("a")), "d1") is None
    with pytest.raises(NoAnswer, match="d0 has consumesCounters, which is not understood"):
        answer(inventory(device_slice("n", part)), shape(claim("a")))
    for bad, why in (
        (claim("a", request(capacity={"requests": {"memory": "1Gi"}})), "capacity"),
        (claim("a", constraints=[{"distinctAttribute": "a/b"}]), "distinctAttribute"),
        (claim("a", {"name": "x"}), "neither exactly nor firstAvailable"),
        (claim("a", request(allocationMode="Some")), "allocationMode Some"),
    ):
        with pytest.raises(NotUnderstood, match=why):
            shape(bad)


def test_devices_that_several_nodes_reach() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    found = inventory(
        device_slice("pool", device("d0"), name="zone", nodeSelector={"nodeSelectorTerms": [term]}),
        device_slice(
            "each", device("d1", nodeName="n"), device("d2", allNodes=True), name="own", perDeviceNodeSelection=True
        ),
    )  # fmt: skip
    three = shape(claim("a", request("x", "gpu", 3)))
    assert names(answer(found, three, zone="a")) == [["d1", "d2", "d0"]]
    found.moved("n")
    assert answer(found, three, zone="b") is None
    assert names(answer(found, shape(claim("a", request("x", "gpu", 0))), node="m", zone="b")) == [["d2"]]


def test_a_search_without_end_is_broken_off() -> None:
    many = [device(f"d{i}", numa=None) for i in range(40)]
    same = {"matchAttribute": "gpu.example.com/model", "requests": ["x"]}
    never = shape(claim("a", request("x", "gpu", 12), request("y", "gpu", 15, BIG), constraints=[same]))
    few = inventory(device_slice("n", *many, *(device(f"b{i}", "big") for i in range(14))))
    with pytest.raises(NoAnswer, match="too many ways"):
        answer(few, never)


def everything(found: Inventory, wanted: Shape, taken: set[str]) -> bool:
    """Whether any assignment at all keeps the rules, by trying each; exact counts alone."""
    (pool,) = found.pools("n", {NODE_NAME: "n"})
    options = [(c, o) for c, wish in enumerate(wanted) for (o,) in wish.requests]
    free = [d for d in pool.devices if d.key[2] not in taken]
    choices = [itertools.combinations([d for d in free if suits(o, d)], o.count) for _, o in options]
    for chosen in itertools.product(*map(list, choices)):
        used = [d.key for devices in chosen for d in devices]
        if len(used) != len(set(used)):
            continue
        keeps = True
        for c, wish in enumerate(wanted):
            for match in wish.matching:
                mine = [
                    d
                    for (at, o), devices in zip(options, chosen, strict=True)
                    for d in devices
                    if at == c and match.covers(o)
                ]
                values = {d.attribute(match.attribute) for d in mine}
                keeps = keeps and len(values) < 2 and None not in values
        if keeps:
            return True
    return False


@pytest.mark.parametrize("seed", seeds(20, 400))
def test_an_answer_is_found_where_there_is_one(seed: int) -> None:
    chance = random.Random(seed)
    found = inventory(device_slice("n", *(device(f"d{i}", chance.choice(["big", "small"])) for i in range(5))))
    even = 'device.attributes["gpu.example.com"].even'

    def one(name: str) -> dict[str, Any]:
        requests = [
            request(f"r{i}", "gpu", chance.choice([1, 1, 2]), *chance.choice([(), (BIG,), (even,)]))
            for i in range(chance.choice([1, 2]))
        ]
        same = {"matchAttribute": f"gpu.example.com/{chance.choice(['model', 'even'])}"}
        return claim(name, *requests, **({"constraints": [same]} if chance.random() < 0.5 else {}))

    for _ in range(20):
        wanted = shape(*(one(f"c{i}") for i in range(chance.choice([1, 2]))))
        taken = {f"d{i}" for i in range(5) if chance.random() < 0.2}
        assert (answer(found, wanted, *taken) is not None) == everything(found, wanted, taken)


def test_the_search_ends_also_where_every_alternative_wants_all_of_something() -> None:
    """Ten requests with eight alternatives each, and one that cannot be met: a thousand million ways."""
    devices = [device(f"d{number}") for number in range(10)]
    options = tuple(
        tuple(Option(f"r{number}", f"r{number}/{way}", "gpu", (), 0) for way in range(8)) for number in range(10)
    )
    wish = Wish((*options, (Option("r99", "r99", "gpu", (), 1),)))
    pools = inventory(device_slice("n", *devices)).pools("n", {NODE_NAME: "n"})
    with pytest.raises(NoAnswer, match="too many ways"):
        allocate((wish,), pools, (), lambda option, of: of.key[2][1:] == option.request[1:])
