"""The examples in `docs/queues` do what the page says, and what Apache YuniKorn's core did with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain_scenarios import as_scenario
from worked_examples import Example, PageError, Performance, pages, read_page, read_text

from fairlead.sim.steps import read_scenarios

READ = [read_page(path) for path in pages()]
EXAMPLES = [example for _, examples in READ for example in examples]
RECORDED = Path(__file__).resolve().parents[1] / "scenarios" / "data" / "documented.jsonl"

NOT_RECORDED = {
    "gang-beside-what-stays": "by priority, a rule that YuniKorn does not know",
    "gangs-hold-each-other": "YuniKorn lets both wait until their time is over",
    "preemption-by-priority": "a rule that YuniKorn does not know",
    "quota-cancelled": "takes more than an hour; quota_preemption.jsonl has recordings with shorter delays",
    "template-properties": "by priority, a rule that YuniKorn does not know",
    "quota-enforced": "takes a quarter of an hour; quota_preemption.jsonl has recordings with shorter delays",
}
"""Examples without a recording, and why."""
BEYOND_YUNIKORN = {"batch.md", "preemption-by-both.md", "preemption-by-priority.md", "priority-classes.md"}
"""Pages about what YuniKorn does not know: none of their examples has a recording."""
UNRECORDED = NOT_RECORDED.keys() | {example.name for example in EXAMPLES if example.page in BEYOND_YUNIKORN}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_it_happens_as_the_page_says(example: Example) -> None:
    """Every line of the example, in order."""
    Performance(example).go()


def test_every_page_has_examples() -> None:
    """At least one each, forty in all, and no name twice."""
    with_examples = {example.page for example in EXAMPLES}
    assert with_examples == {path.name for path in pages()} - {"README.md"}
    names = [example.name for example in EXAMPLES]
    assert len(names) == len(set(names)) >= 40


def test_every_queue_file_is_used() -> None:
    """No queue file of a page is without an example that runs under it."""
    idle = []
    for files, examples in READ:
        used = {example.config for example in examples}
        used |= {step["config"] for example in examples for step in example.steps() if step["op"] == "config"}
        idle += [f"{file.page}:{file.line}" for file in files if file.text not in used]
    assert not idle


def test_the_recordings_are_of_these_examples() -> None:
    """Who changes an example has it recorded anew, or says why not; the recordings run with the other scenarios."""
    with RECORDED.open("rb") as lines:
        recorded = {s.name: s for s in read_scenarios(iter(lines), RECORDED.name)}
    now = {example.name: as_scenario(example.scenario()) for example in EXAMPLES}
    assert sorted(recorded) == sorted(now.keys() - UNRECORDED)
    assert NOT_RECORDED.keys() <= now.keys()
    assert {path.name for path in pages()} >= BEYOND_YUNIKORN
    stale = [n for n, s in recorded.items() if (s.config, s.steps) != (now[n].config, now[n].steps)]
    assert not stale


# --- the reader itself ---

PAGE = """
```yaml
partitions: [{queues: [{name: a, submitacl: "*"}]}]
```

```example one
node n vcore=2
app x queue=root.a
ask x/k vcore=1 times=3
run
%s
```
"""


def perform(line: str) -> None:
    [example] = read_text(PAGE % line, "page.md")[1]
    Performance(example).go()


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("starts x/k-0 x/k-1", "starts x/k-1 x/k-0"),
        ("starts x/k-0@n x/k-1@n", "starts x/k-0@m x/k-1@n"),
        ("starts 2 of x", "starts 3 of x"),
        ("stops nothing", "stops x/k-0"),
        ("running x=2", "running x=3"),
        ("waits x/k-2 cluster-full", "waits x/k-2 queue-full"),
        ("waits x/k-2 cluster-full cpu", "waits x/k-2 cluster-full memory"),
        ("accepts x in root.a", "accepts x in root.b"),
        ("app x Running", "app x Accepted"),
        ("queue root.a used.vcore=2", "queue root.a used.vcore=1"),
        ("queue root.a priority=0 state=Active dynamic=no leaf=yes", "queue root.a priority=none"),
        ("queue root.b gone", "queue root.a gone"),
        ("nominated nothing", "nominated x/k-2@n"),
    ],
)
def test_what_is_not_so_is_found(true: str, false: str) -> None:
    """A line that is so passes, and one that is not fails with its place."""
    perform(f"=> {true}")
    with pytest.raises(AssertionError, match=r"page.md:11: => "):
        perform(f"=> {false}")


@pytest.mark.parametrize(
    "line",
    [
        "=> refused anything",
        "=> rejects x",
        "=> starts nothing",
        "=> evicts x/k-0 for nobody",
        "=> refuses x/k-0 anything",
        "=> declines any anything",
    ],
)
def test_what_did_not_happen_is_found(line: str) -> None:
    """Nothing was refused, nothing rejected, something started."""
    with pytest.raises(AssertionError):
        perform(line)


@pytest.mark.parametrize("false", ["rule=guarantee", "node=m", "violates=nothing", "rule=priority violates=other"])
def test_what_is_recorded_of_an_eviction_is_compared(false: str) -> None:
    """By which rule, on which node, against which budgets."""
    page = PAGE.replace("{queues:", "{preemption: {rule: priority}, queues:").replace(
        "ask x/k vcore=1 times=3\n", "budget b most=0\nask x/k vcore=2\nrun\nask x/top vcore=1 priority=9\n"
    )
    Performance(read_text(page % "=> evicts x/k for x/top rule=priority node=n violates=b", "page.md")[1][0]).go()
    with pytest.raises(AssertionError, match="evicts"):
        Performance(read_text(page % f"=> evicts x/k for x/top {false}", "page.md")[1][0]).go()


@pytest.mark.parametrize(
    "line",
    ["dance", "ask x", "ask x/k vcore=lots", "ask x/k colour=1 loud", "sleep long", "config other", "app x hat=1"],
)
def test_a_line_that_makes_no_sense_is_refused(line: str) -> None:
    """With its number."""
    with pytest.raises(PageError, match="line 11"):
        perform(line)


def test_a_refused_queue_file_has_to_be_expected() -> None:
    """An example whose queue file is refused fails unless it says so."""
    page = PAGE.replace("name: a", "name: a.b") % "=> running x=2"
    with pytest.raises(AssertionError, match="refused"):
        Performance(read_text(page, "page.md")[1][0]).go()


@pytest.mark.parametrize(
    "page",
    ["```example one\nrun\n```\n", "```yaml\na: 1\n```\n```example\nrun\n```\n", PAGE.replace("one", "one queues=b")],
)
def test_a_block_out_of_place_is_refused(page: str) -> None:
    """An example without a name, or without its queue file."""
    with pytest.raises(PageError):
        read_text(page, "page.md")
