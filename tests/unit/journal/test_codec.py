"""What is written can be read, has one spelling, and everything else is refused with its place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import DECISION_TYPES, EVENT_TYPES, REASON_TYPES, decisions, events, of, reasons

from fairlead.core.model.constraints import ANYWHERE, Constraints
from fairlead.core.model.decisions import Allocated, AskRejected
from fairlead.core.model.events import AddAsks, AddNode, Cause, Release, RemoveNode, SetPriority
from fairlead.core.model.reasons import NoNodes
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import AskSpec, NodeSpec, QueueSpec
from fairlead.journal import codec
from fairlead.journal.codec import CodecError

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)

KNOWN = (*EVENT_TYPES, *DECISION_TYPES, *REASON_TYPES, QueueSpec)


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Inner:
    name: str


@codec.register
@dataclass(frozen=True)
class Everything:
    """One field of each form that is possible."""

    colour: Colour
    pairs: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    nested: Mapping[str, tuple[Inner, ...]]
    either: int | str
    free: object
    inner: Inner | NoNodes | None = None
    limits: Limits | None = None
    ratio: float = 0.5


def everything(**changes: Any) -> Everything:
    values: dict[str, Any] = {
        "colour": Colour.BLUE,
        "pairs": ((1, 2), ()),
        "names": ("x",),
        "nested": {"k": (Inner("i"),)},
        "either": "s",
        "free": {"a": [1, None, True, 2.5]},
    }
    return Everything(**values | changes)


@pytest.mark.parametrize("cls", KNOWN, ids=lambda c: c.__name__)
def test_every_type_survives_the_round_trip(cls: type) -> None:
    """A value of any registered type is equal after writing and reading, and has the same bytes again."""

    # Each of so many types a few; with the profile `long` as many of each as of anything else by default.
    @settings(max_examples=settings.default.max_examples // 10)
    @given(of(cls))
    def check(value: object) -> None:
        data = codec.encode(value)
        back = codec.decode(data, cls)
        assert back == value
        assert codec.encode(back) == data

    check()


@given(events())
def test_events_are_read_as_events(event: Any) -> None:
    """`decode_event` gives back any event."""
    assert codec.decode_event(codec.encode(event)) == event


@given(st.lists(decisions(), max_size=5))
def test_a_list_of_decisions_keeps_its_order(made: list[Any]) -> None:
    """An outcome is read back as the same decisions in the same order."""
    assert codec.decode_decisions(codec.encode_all(made)) == tuple(made)


@given(reasons())
def test_the_bytes_are_canonical(reason: Any) -> None:
    """No spaces and UTF-8: what the standard library would write with these settings."""
    data = codec.encode(reason)
    assert data == json.dumps(json.loads(data), separators=(",", ":"), ensure_ascii=False).encode()


@given(PLAIN)
def test_the_keys_of_a_state_are_sorted(value: object) -> None:
    """However it was filled."""
    again = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert codec.encode_plain(value) == again.encode()


def test_the_spelling_is_fixed() -> None:
    """The bytes of an event are part of the format: they must not change by accident."""
    event = Release("app", "task-1", Cause.FINISHED)
    assert codec.encode(event) == (
        b'{"$":"Release","application":"app","key":"task-1","cause":"FINISHED","partition":"default"}'
    )


def test_what_is_empty_is_left_out_and_no_other_default() -> None:
    """A default that says something is written: it may be another one in a later version."""
    ask = AskSpec(application="app", key="k", resources=Resources(), labels=MappingProxyType({}), where=Constraints())
    assert codec.encode(AddAsks((ask,))) == (
        b'{"$":"AddAsks","asks":[{"$":"AskSpec","application":"app","key":"k","resources":{},'
        b'"allow_preempt_other":true,"allow_preempt_self":true,"attempt":1}],"partition":"default"}'
    )
    assert codec.decode(codec.encode(AddAsks((ask,))), AddAsks).asks[0].where is ANYWHERE


def test_the_order_of_declaration_does_not_reach_the_bytes() -> None:
    """A field that moves in its class does not change what is written."""
    assert codec.encode(everything()).index(b'"names"') < codec.encode(everything()).index(b'"pairs"')


def test_the_order_of_a_mapping_does_not_reach_the_bytes() -> None:
    """Two equal mappings filled in another order are written alike, read-only views too."""
    one = NodeSpec(id="n", capacity=Resources(), attributes={"a": "1", "b": "2"})
    other = NodeSpec(id="n", capacity=Resources(), attributes=MappingProxyType({"b": "2", "a": "1"}))
    assert codec.encode(AddNode(one)) == codec.encode(AddNode(other))


def test_hash_seed_does_not_reach_the_bytes() -> None:
    """Processes with different hash seeds write the same bytes."""
    program = (
        "from fairlead.journal import codec; from fairlead.core.model.events import AddNode;"
        "from fairlead.core.model.specs import NodeSpec; from fairlead.core.model.resources import Resources;"
        "n=NodeSpec(id='n',capacity=Resources({'a':1,'b':2,'c':3}),attributes=dict.fromkeys({'x','y','z','w'},'1'));"
        "print(codec.encode(AddNode(n)).decode())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(said) == 1


def test_every_form_of_field_survives() -> None:
    """Enums, tuples of tuples, mappings of tuples, unions, plain JSON, dataclasses among alternatives."""
    for value in (
        everything(),
        everything(either=3, inner=Inner("x"), limits=Limits({"vcore": 0})),
        everything(inner=NoNodes("p"), ratio=1, free=None),
    ):
        assert codec.decode(codec.encode(value), Everything) == value


def test_half_a_surrogate_pair_is_refused() -> None:
    """It is no text: neither two halves in a row nor a file name as `os.fsdecode` makes it of other bytes."""
    for name in ("\ud83d\ude00", os.fsdecode(b"caf\xe9")):
        with pytest.raises(CodecError, match=r"RemoveNode: half of a surrogate pair in .*; send text"):
            codec.encode(RemoveNode(name))


def test_an_absent_field_takes_its_default() -> None:
    """What was written before a field existed can still be read."""
    old = b'{"$":"Release","application":"a","key":"k"}'
    assert codec.decode_event(old) == Release("a", "k", Cause.STOPPED_BY_RM, "default")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b'{"$":"Release","application":"a"}', r"^Release: object missing required field `key`"),
        (
            b'{"$":"Release","application":"a","key":"k","wait":1}',
            r"^Release: object contains unknown field `wait`; was",
        ),
        (b'{"$":"Launch"}', r"^unknown type 'Launch': written by another version of Fairlead"),
        (b'{"$":7}', r"^\.\$: expected `str`"),
        (b'{"application":"a","key":"k"}', r"^expected an object with its type under '\$'"),
        (b"[]", r"^expected `object`, got `array`"),
        (b'{"$":"Release","application":"a","key":1}', r"^Release\.key: expected `str`, got `int`"),
        (
            b'{"$":"Release","application":"a","key":"k","cause":"BOREDOM"}',
            r"Release\.cause: invalid enum value 'BORED",
        ),
        (b'{"$":"Release","application":"a","key":"k","cause":[]}', r"Release\.cause: expected `str`, got `array`"),
        (b'{"$":"SetPriority","application":"a","key":"k","priority":true}', r"SetPriority\.priority: expected `int`"),
        (b'{"$":"SetPriority","application":"a","key":"k","priority":1.0}', r"priority: expected `int`, got `float`"),
        (
            b'{"$":"AddAsks","asks":[{"$":"AskSpec"}]}',
            r"AddAsks\.asks\[0\]: object missing required field `application`",
        ),
        (b'{"$":"AddAsks","asks":{}}', r"AddAsks\.asks: expected `array`"),
        (
            b'{"$":"AddAsks","asks":[{"$":"Surprise"}]}',
            r"AddAsks\.asks\[0\]: unknown type 'Surprise': written by another",
        ),
        (b'{"$":"AddAsks","asks":[{"$":"NoNodes"}]}', r"AddAsks\.asks\[0\]: NoNodes has no place here"),
        (b'{"$":"UpdateNode","id":"n","capacity":{"cpu":"1"}}', r"capacity\[\.\.\.\]: expected `int`, got `str`"),
        (b'{"$":"UpdateNode","id":"n","capacity":[]}', r"capacity: expected `object`"),
        (b'{"$":"Allocated","application":"a","key":"k","node":"n"}', r"^Allocated has no place here"),
        (b"{", r"^not JSON: "),
        (b"\xff", r"^not JSON: "),
        (b'{"$":NaN}', r"^not JSON: "),
        (b"[" * 100_000, r"expected `object`, got `array`"),
    ],
)
def test_what_is_not_an_event_is_refused_with_its_place(data: bytes, complaint: str) -> None:
    """Each fault in the bytes is named, with where it is."""
    with pytest.raises(CodecError, match=complaint):
        codec.decode_event(data)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (SetPriority("a", "k", True), r"^SetPriority\.priority: expected `int`, got `bool`"),
        (SetPriority("a", "k", 1.5), r"^SetPriority\.priority: expected `int`, got `float`"),  # type: ignore[arg-type]
        (AddAsks((Inner("x"),)), r"^AddAsks\.asks\[0\]: Inner has no place here"),  # type: ignore[arg-type]
        (AddAsks(("k",)), r"^AddAsks cannot be written: str is not registered"),  # type: ignore[arg-type]
        (AddAsks((AskSpec(application="a", key="k", resources=7),)), r"asks\[0\]\.resources: expected `object`"),  # type: ignore[arg-type]
        (Release("a", "k", "BOREDOM"), r"Release\.cause: invalid enum value 'BOREDOM'"),  # type: ignore[arg-type]
        (AskRejected("a", "k", Inner("x")), r"AskRejected\.reason: Inner has no place here"),  # type: ignore[arg-type]
        (
            AddNode(NodeSpec(id="n", capacity=Resources(), attributes={1: "x"})),
            r"AddNode cannot be written: .*str keys",
        ),  # type: ignore[dict-item]
        (everything(ratio=float("nan")), r"Everything\.ratio: expected `int | float`, got `null`"),
        (everything(either=None), r"Everything\.either: expected `int | str`, got `null`"),
        (everything(pairs=(("1",),)), r"Everything\.pairs\[0\]\[0\]: expected `int`, got `str`"),
        (everything(free=object()), r"Everything cannot be written: object <object .* has no JSON form"),
        ("text", r"str is not registered"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(value: object, complaint: str) -> None:
    """A value with a part of the wrong type is refused when it is written, not when it is needed."""
    with pytest.raises(CodecError, match=complaint):
        codec.encode(value)


def test_a_decision_among_others_is_named_by_its_position() -> None:
    """The position in an outcome is part of the place."""
    with pytest.raises(CodecError, match=r"^\[1\]\.node: expected `str`, got `int`"):
        codec.encode_all([Allocated("a", "k", "n"), Allocated("a", "k", 3)])  # type: ignore[arg-type]


def test_a_name_can_be_registered_once() -> None:
    """Two classes of one name could not be told apart."""
    other = dataclass(frozen=True)(type("Everything", (), {"__annotations__": {"x": int}}))
    with pytest.raises(CodecError, match="the name Everything is taken"):
        codec.register(other)
    assert codec.register(Everything) is Everything


def test_a_type_without_a_plain_form_cannot_be_registered() -> None:
    """A field that could not be read back is refused at once, with its name, and leaves nothing behind."""

    @dataclass(frozen=True)
    class Odd:
        when: complex

    with pytest.raises(CodecError, match=r"Odd\.when: the type complex has no JSON form"):
        codec.register(Odd)
    with pytest.raises(CodecError, match="Odd is not registered"):
        codec.encode(Odd(1j))


def test_objects_that_could_not_be_told_apart_cannot_be_registered() -> None:
    """A union of two kinds of objects without a tag is refused."""
    both = dataclass(frozen=True)(type("Both", (), {"__annotations__": {"x": Resources | Limits}}))
    with pytest.raises(CodecError, match="could not be told apart"):
        codec.register(both)


def test_a_class_that_refuses_its_values_is_named() -> None:
    """The words of a class's own check come out as a complaint about the record."""

    @codec.register
    @dataclass(frozen=True)
    class Picky:
        x: int

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x is below zero")

    with pytest.raises(CodecError, match="Picky: refused by its own checks: x is below zero"):
        codec.decode(b'{"$":"Picky","x":-1}', Picky)


def test_the_expected_type_is_checked() -> None:
    """Reading something else than what was expected is an error."""
    with pytest.raises(CodecError, match="expected AddNode, got RemoveNode"):
        codec.decode(codec.encode(RemoveNode("n")), AddNode)


@given(PLAIN)
def test_plain_values_survive(value: object) -> None:
    """A state of plain values comes back equal."""
    assert codec.decode_plain(codec.encode_plain(value)) == value


def test_a_long_list_is_read_row_by_row() -> None:
    """At a start all rows of the book were there at once, and the service stayed three times as large as before."""
    rows = [{f"field-{name}": f"{row} {name}" for name in range(40)} for row in range(500)]
    data = codec.encode_plain({"rows": rows, "names": ["a", "b"], "none": [], "number": 7, "of": {"a": 1}})
    found = codec.decode_by_rows(data)
    assert {name: found[name] for name in ("names", "none", "number", "of")} == {
        "names": ["a", "b"], "none": [], "number": 7, "of": {"a": 1},
    }  # fmt: skip
    assert list(found["rows"]) == rows
    assert _most(lambda: deque(codec.decode_by_rows(data)["rows"], 0)) * 10 < _most(lambda: codec.decode_plain(data))


def _most(act: Callable[[], object]) -> int:
    """The most memory, in bytes, that it takes at once."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@given(PLAIN)
def test_a_read_only_view_is_written_as_what_it_shows(value: object) -> None:
    """A state of plain types and the same behind a read-only view have the same bytes."""
    wrapped = codec.encode_plain(MappingProxyType({"state": value}))
    assert codec.encode_plain({"state": value}) == wrapped


def test_a_state_with_other_keys_than_texts_is_refused() -> None:
    """JSON would make texts of them silently."""
    with pytest.raises(CodecError, match=r"dict cannot be written: .* str keys"):
        codec.encode_plain({"a": [{1: "x"}]})


def test_a_state_with_objects_is_refused() -> None:
    """They could not be read back."""
    with pytest.raises(CodecError, match=r"dict cannot be written: object .* has no JSON form"):
        codec.encode_plain({"a": object()})


def test_a_state_that_is_nested_without_end_is_refused() -> None:
    """An error of ours, not of the interpreter."""
    deep: list[object] = []
    deep.append(deep)  # How deep the interpreter goes differs from one to the next.
    with pytest.raises(CodecError, match="nested too deeply"):
        codec.encode_plain(deep)


@pytest.mark.parametrize("data", [b'{"$":"\xc1"}', b'{"\xc1":1}', b'[{"$":"Evict","key":"\xff"}]'])
@pytest.mark.parametrize("read", [codec.decode_event, codec.decode_decisions, codec.decode_plain])
def test_what_is_not_utf_8_is_damaged(read: Any, data: bytes) -> None:
    """Found by fuzzing: another exception than the one that says so."""
    with pytest.raises(CodecError):
        read(data)
