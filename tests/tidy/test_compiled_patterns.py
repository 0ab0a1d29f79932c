"""What mypyc takes and makes something else of is found in the source: the compiler takes minutes, and says nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "compiled_wheel.py"


def compiled_modules() -> list[Path]:
    """The files that the build hook compiles, by its own lists; hatchling, which calls it, need not be there."""
    tree = ast.parse(SCRIPT.read_text())
    lists = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
    }
    found = {path for pattern in lists["COMPILED"] for path in (ROOT / "src").glob(pattern)}
    return sorted(found - {path for pattern in lists["LEFT_PLAIN"] for path in (ROOT / "src").glob(pattern)})


def missing_at_run_time(source: str) -> Iterator[str]:
    """Fields of dataclasses and named tuples whose annotations name what is imported for type checking alone.

    A compiled module looks them up when it is imported: `KeyError` there, or the process ends. (Classes of ours a
    dataclass takes from where they are compiled, if they were imported before.)
    """
    tree = ast.parse(source)
    late = {
        name.asname or name.name: (imported.module or "").startswith("fairlead")
        for guard in ast.walk(tree)
        if isinstance(guard, ast.If) and ast.unparse(guard.test) == "TYPE_CHECKING"
        for imported in guard.body
        if isinstance(imported, ast.ImportFrom)
        for name in imported.names
    }
    for kind in ast.walk(tree):
        if not isinstance(kind, ast.ClassDef):
            continue
        is_tuple = "NamedTuple" in map(ast.unparse, kind.bases)
        if is_tuple or any("dataclass" in ast.unparse(each) for each in kind.decorator_list):
            found = {name for name, is_ours in late.items() if is_tuple or not is_ours}
            for each in kind.body:
                names = ast.walk(each.annotation) if isinstance(each, ast.AnnAssign) else ()
                if any(isinstance(name, ast.Name) and name.id in found for name in names):
                    yield f"{kind.name}: {ast.unparse(each)}"


def test_fields_of_dataclasses_are_known_when_a_module_is_imported() -> None:
    modules = compiled_modules()
    assert len(modules) > 100
    found = {path.relative_to(ROOT).as_posix(): list(missing_at_run_time(path.read_text())) for path in modules}
    assert {name: fields for name, fields in found.items() if fields} == {}


@pytest.mark.parametrize(
    ("kind", "field", "found"),
    [
        ("@dataclass(slots=True)\nclass A:", "x: list[int]", False),
        ("@dataclass(slots=True)\nclass A:", "x: Sequence[int]", True),
        ("@dataclass(slots=True)\nclass A:", "x: Ask", False),
        ("class A(NamedTuple):", "x: Ask", True),
        ("class A(NamedTuple):", "x: int", False),
    ],
)
def test_such_a_field_is_found(kind: str, field: str, found: bool) -> None:
    imports = "    from collections.abc import Sequence\n    from fairlead.core.books import Ask\n"
    source = f"if TYPE_CHECKING:\n{imports}{kind}\n    {field}\n"
    assert list(missing_at_run_time(source)) == ([f"A: {field}"] if found else [])
