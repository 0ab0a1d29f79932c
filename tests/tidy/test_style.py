"""The house rules that no tool knows, read from the source itself.

A limit is a ratchet: what is over it stands in a list with its number, the number may only shrink, and an entry that is
no longer needed has to go.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "fairlead"

FILE_LINES_MAX = 400
TEST_FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

LONG_FILES: dict[str, int] = {}
"""Path from the root: lines. Shrink it, never raise it."""

LONG_FUNCTIONS: dict[str, int] = {}
"""Path from the root, then `::` and the function's name with its class: lines. Shrink it, never raise it."""

EMPTY_NAMES = ("Manager", "Helper", "Info", "Data", "Common", "Utils", "Util")
"""Words that say nothing of what a thing is. As the last word of a class or module: name the noun."""

PURE = ("core", "policy", "scheduler.py")
"""No clock, no chance, no lock, no log, no file, no socket."""

PURE_STANDARD_LIBRARY = frozenset(
    """
    __future__ abc array bisect collections contextlib copy dataclasses enum fractions functools graphlib heapq
    itertools json math operator re sys types typing weakref
    """.split()  # noqa: SIM905 (a list of 22 quoted words is harder to read)
)
"""What the pure part may import of the standard library: data structures and arithmetic; `sys` to intern names."""


# --- reading the source ---


def sources(*parts: str) -> list[Path]:
    """The package's Python files, or those of the named parts of it, in one order."""
    roots = [PACKAGE / part for part in parts or [""]]
    return sorted(path for root in roots for path in ([root] if root.is_file() else root.rglob("*.py")))


def sources_of_tests() -> list[Path]:
    return sorted((ROOT / "tests").rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Every function with its lines, its docstring left out: what is long is the code, not what is said of it."""

    def visit(node: ast.AST, outer: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from visit(child, f"{outer}{child.name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                body = child.body
                if ast.get_docstring(child, clean=False) is not None:
                    body = body[1:]
                lines = (child.end_lineno or child.lineno) - body[0].lineno + 1 if body else 0
                yield f"{name(path)}::{outer}{child.name}", lines
                yield from visit(child, f"{outer}{child.name}.")
            else:
                yield from visit(child, outer)

    yield from visit(tree(path), "")


# --- sizes ---


def ratchet(limit: int, allowed: dict[str, int], sizes: dict[str, int]) -> list[str]:
    """What breaks the limit or the list of exceptions, as sentences."""
    wrong = []
    for thing, size in sizes.items():
        most = allowed.get(thing, limit)
        if size > most:
            wrong.append(f"{thing} has {size} lines, {most} are allowed: which noun is missing?")
        elif thing in allowed and size <= limit:
            wrong.append(f"{thing} has {size} lines and needs no exception any more: take it off the list")
        elif thing in allowed and size < most:
            wrong.append(f"{thing} has shrunk to {size} lines: write {size} instead of {most} into the list")
    wrong += [f"{thing} is gone: take it off the list" for thing in allowed if thing not in sizes]
    return wrong


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_files_are_short() -> None:
    """A file that outgrows its room lacks a noun."""
    assert not ratchet(FILE_LINES_MAX, LONG_FILES, {name(path): lines_of(path) for path in sources()})


def test_functions_are_short() -> None:
    """A function fits on a screen."""
    assert not ratchet(FUNCTION_LINES_MAX, LONG_FUNCTIONS, {f: n for path in sources() for f, n in functions(path)})


def test_test_files_are_short() -> None:
    """A test file does not become a second code base."""
    assert not ratchet(TEST_FILE_LINES_MAX, {}, {name(path): lines_of(path) for path in sources_of_tests()})


@pytest.mark.parametrize(
    ("allowed", "sizes", "want"),
    [
        ({}, {"a": 10}, ""),
        ({}, {"a": 11}, "11 lines, 10 are allowed"),
        ({"a": 15}, {"a": 15}, ""),
        ({"a": 15}, {"a": 16}, "16 lines, 15 are allowed"),
        ({"a": 15}, {"a": 12}, "write 12 instead of 15"),
        ({"a": 15}, {"a": 10}, "needs no exception"),
        ({"a": 15}, {}, "a is gone"),
    ],
)
def test_a_limit_is_a_ratchet(allowed: dict[str, int], sizes: dict[str, int], want: str) -> None:
    """What is over the limit may shrink and vanish, and the list follows; nothing grows."""
    wrong = ratchet(10, allowed, sizes)
    assert len(wrong) == bool(want)
    assert all(want in sentence for sentence in wrong)


# --- words ---


def test_every_module_says_what_it_is() -> None:
    """A module opens with what it decides and what it never does; only an empty __init__.py has nothing to say."""
    silent = [name(path) for path in sources() if tree(path).body and not ast.get_docstring(tree(path))]
    assert not silent


def test_every_folder_is_a_package() -> None:
    """Without an __init__.py the type checker, the import rules and the wheel may each see a different package."""
    folders = {path.parent for path in sources()}
    assert not sorted(name(folder) for folder in folders if not (folder / "__init__.py").exists())


def test_no_name_is_empty_of_meaning() -> None:
    """Classes and modules are named for what they are."""
    wrong = []
    for path in sources():
        stem = path.parent.name if path.stem == "__init__" else path.stem
        if stem.split("_")[-1].capitalize() in EMPTY_NAMES:
            wrong.append(name(path))
        wrong += [
            f"{name(path)}::{node.name}"
            for node in ast.walk(tree(path))
            if isinstance(node, ast.ClassDef) and node.name.endswith(EMPTY_NAMES)
        ]
    assert not wrong


# --- purity and order ---


def imported_roots(path: Path) -> Iterator[tuple[int, str]]:
    """The first part of everything imported, with its line, wherever in the file it stands."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, (node.module or "").split(".")[0]


def test_the_pure_part_imports_data_structures_only() -> None:
    """Core, policy and scheduler know no clock, chance, lock, log, file or socket: they cannot even import them."""
    allowed = PURE_STANDARD_LIBRARY | {"fairlead", "numpy"}
    wrong = [
        f"{name(path)}:{n}: {root}"
        for path in sources(*PURE)
        for n, root in imported_roots(path)
        if root not in allowed
    ]
    assert not wrong


IMPURE_CALLS = frozenset({"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint", "id"})
"""Builtins that reach outside; `id` because an address differs from run to run."""


def test_the_pure_part_calls_nothing_outside() -> None:
    """No file, no terminal, no code made at run time, no addresses, and no random numbers by way of NumPy."""
    wrong = []
    for path in sources(*PURE):
        for node in ast.walk(tree(path)):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS
            drawn = isinstance(node, ast.Attribute) and ast.unparse(node) in {"np.random", "numpy.random"}
            if called or drawn:
                wrong.append(f"{name(path)}:{node.lineno}: {ast.unparse(node)[:60]}")
    assert not wrong


def is_set(node: ast.expr) -> bool:
    """Whether the expression is seen to be a set."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in {"set", "frozenset"}
        return isinstance(node.func, ast.Attribute) and node.func.attr in {
            "union", "intersection", "difference", "symmetric_difference",
        }  # fmt: skip
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor)
        and (is_set(node.left) or is_set(node.right))
    )


def iterated(module: ast.Module) -> Iterator[ast.expr]:
    """Everything whose order is taken over: by loops, comprehensions, `list(...)` and the like, but not by `sorted`."""
    for node in ast.walk(module):
        if isinstance(node, ast.For):
            yield node.iter
        elif isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
            yield from (generator.iter for generator in node.generators)
        elif isinstance(node, ast.Starred):
            yield node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"list", "tuple", "iter", "enumerate", "dict"}
        ):
            yield from node.args


def sets_iterated(module: ast.Module) -> list[int]:
    """Lines on which a set's order is taken over; sets are expressions and names that the file gives a set to."""
    names = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and is_set(node.value):
            names.update(ast.unparse(target) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and re.match(r"(frozen)?set\b", ast.unparse(node.annotation)):
            names.add(ast.unparse(node.target))
    return [node.lineno for node in iterated(module) if is_set(node) or ast.unparse(node) in names]


def test_no_set_gives_an_order() -> None:
    """A set's order differs from process to process; what can reach a decision is ordered by `sorted` or a dict."""
    assert not [f"{name(path)}:{line}" for path in sources(*PURE) for line in sets_iterated(tree(path))]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("for x in {1, 2}: pass", True),
        ("[x for x in set(y)]", True),
        ("list(a.union(b))", True),
        ("self.seen: set[str] = f()\nfor x in self.seen: pass", True),
        ("s = a | {1}\nfor x in s: pass", True),
        ("print(*frozenset(y))", True),
        ("for x in sorted({1, 2}): pass", False),
        ("x in {1, 2}", False),
        ("for x in {1: 2}: pass", False),
        ("any(x for x in [1])", False),
    ],
)
def test_iterated_sets_are_found(code: str, found: bool) -> None:
    """The check sees what it claims to see."""
    assert bool(sets_iterated(ast.parse(code))) is found


BOOK_OF_JOBS = frozenset(
    {
        "announcing.py",
        "callers.py",
        "changes.py",
        "dependencies.py",
        "holding.py",
        "arrays.py",
        "array_changes.py",
        "selection.py",
        "reconfigured.py",
        "memory_guard.py",
        "attempt_ends.py",
        "placing.py",
        "history_records.py",
        "limit_signals.py",
        "requests.py",
        "signals.py",
        "waits.py",
        "job.py",
        "job_bounds.py",
        "ended_jobs.py",
        "live_jobs.py",
        "owned_jobs.py",
        "user_bounds.py",
        "unknown_accounts.py",
        "submissions.py",
        "place.py",
        "jobs.py",
    }
)
"""The part of local that is kept by the runtime; all the rest handles processes."""
OF_DEVICES = {"gpus.py": "pynvml"}
"""What a device is is asked of the library of its maker, where that is there."""


def imported_modules(path: Path) -> Iterator[str]:
    """Everything imported by its full name, wherever in the file it stands; relative ones with their dots."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "fairlead.local":
            yield from (f"fairlead.local.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_processes_stand_alone() -> None:
    """What handles processes knows the core's words, the standard library, and nothing of who decides."""
    above = {f"fairlead.local.{file.removesuffix('.py')}" for file in BOOK_OF_JOBS}
    wrong = [
        f"{name(path)}: {module}"
        for path in sources("local")
        if path.name not in BOOK_OF_JOBS and path.parent.name != "supervisor"
        for module in imported_modules(path)
        if module in above
        or not (
            module.startswith(("fairlead.core", "fairlead.local"))
            or module.split(".")[0] in sys.stdlib_module_names
            or module == OF_DEVICES.get(path.name)
        )
    ]
    assert not wrong


def test_the_supervisor_needs_nothing_around_it() -> None:
    """The supervisor knows itself and the standard library: it starts when the environment around it is broken."""
    wrong = [
        f"{name(path)}: {module}"
        for path in sources("local/supervisor")
        for module in imported_modules(path)
        if not (re.match(r"\.(?!\.)", module) or module.split(".")[0] in sys.stdlib_module_names)
    ]
    assert not wrong
