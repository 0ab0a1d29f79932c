"""Breaks that make themselves: each call that wakes something, marks it as changed, or sets a timer, is left out.

Decides which calls these are, and what the break of one is called. Calls that a break of the list changes already are
passed over. Never runs anything. Invariant: whoever adds such a call need not think of its break.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from properties.break_list import ROOT, Break

WAKING = frozenset(
    """
    wake wake_all wake_leaf wake_waiting wake_the_kept_off _wake _wake_matching unblock open_gate open_gates loosened
    gained touch touch_app raised widened nodes_changed domain_lost reshare resized capacity_changed
    look look_again look_later look_at_late _look clear_unfit seeks _seek bring_up let_go yield_room
    line_up _line_up wait_again enter_next enter_if_met await_turn _await part_ways come_under_limits
    limits_changed _limits_changed keep_anew rearm watch watch_all
    change_priority recount_priority recount_priorities _priority_may_have_changed
    note_change note_due note_attempt _wait_for_node moves_on may_preempt_again _let_try_again
    note_owed find_owed find_guarantees
    set_earlier set_timer _set_timer _set_timer_earlier count_running give_place_back
    """.split()  # noqa: SIM905 (a list of quoted words is harder to read)
)
"""Names of the functions and methods; and `timers.set`."""

PLACES = ("src/fairlead/core/acts", "src/fairlead/core/books", "src/fairlead/policy")

NEEDLESS: dict[str, str] = {
    "core/acts/application_steps: wait_for_place without application_limits.look_again(app)": (
        "what gave way was looked at then, and of what waits for the turns of others nothing is in line"
    ),
    "policy/place/reserved: place_reserved without _wait_for_node(partition, shape)": "without it each run looks",
}
"""Breaks that change no decision, each with why the call is there all the same."""


def left_out(listed: Iterable[Break], root: Path = ROOT, needless: Container[str] = NEEDLESS) -> list[Break]:
    """One break for each such call that no break of the list changes, and that is not `needless`."""
    covered = {(each.file, line) for each in listed for line in _changed_lines(each, root)}
    found = []
    for folder in PLACES:
        for path in sorted((root / folder).rglob("*.py")):
            found += list(_of_file(path.relative_to(root).as_posix(), path.read_text(), covered))
    return [each for each in found if each.name not in needless]


def _changed_lines(each: Break, root: Path) -> Iterator[int]:
    """The lines of its file that a break changes."""
    text = (root / each.file).read_text()
    first = text.count("\n", 0, text.find(each.old)) + 1
    kept = set(each.new.split("\n"))
    return (first + i for i, line in enumerate(each.old.split("\n")) if line.strip() and line not in kept)


def _of_file(file: str, text: str, covered: set[tuple[str, int]]) -> Iterator[Break]:
    module = file.removeprefix("src/fairlead/").removesuffix(".py")
    own = Path("tests/unit", f"{module}.py")
    tests = own.with_name(f"test_{own.name}").as_posix()
    known: Counter[str] = Counter()
    for function, call in _calls(ast.parse(text)):
        name = f"{module}: {function} without {ast.unparse(call)}"
        known[name] += 1
        again = f" ({known[name]})" if known[name] > 1 else ""
        lines = range(call.lineno, (call.end_lineno or call.lineno) + 1)
        if not any((file, line) in covered for line in lines):
            yield Break(name + again, file, *_without(text, call), likely_by=tests)


def _calls(tree: ast.Module) -> Iterator[tuple[str, ast.Expr]]:
    """Each statement that is nothing but such a call, with the name of the function it stands in, from the top down."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for function in sorted(functions, key=lambda f: f.lineno):
        for node in sorted((n for n in ast.walk(function) if isinstance(n, ast.Expr)), key=lambda n: n.lineno):
            if isinstance(node.value, ast.Call) and _wakes(node.value.func):
                yield function.name, node


def _wakes(called: ast.expr) -> bool:
    if isinstance(called, ast.Attribute):
        of_timers = isinstance(called.value, ast.Attribute) and called.value.attr == "timers"
        return called.attr in WAKING or (of_timers and called.attr == "set")
    return isinstance(called, ast.Name) and called.id in WAKING


def _without(text: str, call: ast.Expr) -> tuple[str, str]:
    """The text of the file around the call, as much as stands there only once, and the same without the call."""
    lines = text.split("\n")
    first, last = call.lineno - 1, call.end_lineno or call.lineno
    start = first
    while text.count(old := "\n".join(["", *lines[start:last], ""])) != 1:
        start -= 1
    gone = " " * call.col_offset + "pass"
    return old, "\n".join(["", *lines[start:first], gone, ""])
