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
    """Fields of dataclasses whose annotations name what is imported for type checking alone, and is no class of ours.

    A compiled module looks them up when it is imported: `KeyError` there. (Classes of ours it knows by itself.)
    """
    tree = ast.parse(source)
    late = {
        name.asname or name.name
        for guard in ast.walk(tree)
        if isinstance(guard, ast.If) and ast.unparse(guard.test) == "TYPE_CHECKING"
        for imported in guard.body
        if isinstance(imported, ast.ImportFrom) and not (imported.module or "").startswith("fairlead")
        for name in imported.names
    }
    for kind in ast.walk(tree):
        if isinstance(kind, ast.ClassDef) and any("dataclass" in ast.unparse(each) for each in kind.decorator_list):
            for each in kind.body:
                names = ast.walk(each.annotation) if isinstance(each, ast.AnnAssign) else ()
                if any(isinstance(name, ast.Name) and name.id in late for name in names):
                    yield f"{kind.name}: {ast.unparse(each)}"


def test_fields_of_dataclasses_are_known_when_a_module_is_imported() -> None:
    modules = compiled_modules()
    assert len(modules) > 100
    found = {path.relative_to(ROOT).as_posix(): list(missing_at_run_time(path.read_text())) for path in modules}
    assert {name: fields for name, fields in found.items() if fields} == {}


@pytest.mark.parametrize(("field", "found"), [("x: list[int]", []), ("x: Sequence[int]", ["A: x: Sequence[int]"])])
def test_such_a_field_is_found(field: str, found: list[str]) -> None:
    source = (
        f"if TYPE_CHECKING:\n    from collections.abc import Sequence\n@dataclass(slots=True)\nclass A:\n    {field}\n"
    )
    assert list(missing_at_run_time(source)) == found
