"""The harness of deliberate breaks: it fits the code, changes a copy only, and sees what a check sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from properties.break_list import ROOT, Break, DoesNotFit, broken_text, read_breaks
from properties.breaks import Check, main, run
from properties.left_out import NEEDLESS, WAKING, left_out

A_BREAK = Break("a break", "src/fairlead/core/books/demand.py", "lacks(self.max, self.allocated, items)", "False")
QUICK = Check("limits", ("tests/unit/policy/eligibility/test_limits.py",))
BLIND = Check("plain", ("tests/unit/core/model/test_plain.py",))


LISTED = read_breaks()


@pytest.mark.parametrize("each", [*LISTED, *left_out(LISTED)], ids=lambda b: b.name)
def test_each_break_fits_the_code(each: Break) -> None:
    """Its old text stands once in its file, and the broken file is Python still: nothing else would be found."""
    compile(broken_text(each), each.file, "exec")


@pytest.mark.parametrize(
    ("each", "why"),
    [
        (Break("gone", A_BREAK.file, "no such text", "x"), "gone: .* has the old text 0 times"),
        (
            Break("often", A_BREAK.file, "Obstacle", "x"),
            r"often: .* has the old text \d+ times",
        ),
        (Break("nowhere", "src/fairlead/no.py", "a", "b"), "nowhere: there is no file src/fairlead/no.py"),
        (Break("same", A_BREAK.file, A_BREAK.old, A_BREAK.old), "same: the new text is the old one"),
    ],
)
def test_a_break_that_does_not_fit_is_told(each: Break, why: str) -> None:
    """Before anything is run: a break that changes nothing would look like a blind spot of the tests."""
    with pytest.raises(DoesNotFit, match=why):
        run([A_BREAK, each], checks=())


def test_a_name_that_is_not_on_the_list_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """With the status of a list that does not fit."""
    assert main(["no such break"]) == 2
    assert "no break named 'no such break'" in capsys.readouterr().err


def test_two_breaks_of_one_name_are_told(tmp_path: Path) -> None:
    """The table would not tell which is meant."""
    one = '[[break]]\nname = "n"\nfile = "f"\nold = "a"\nnew = "b"\n'
    (tmp_path / "twice.toml").write_text(one + one)
    with pytest.raises(DoesNotFit, match="'n' stands there twice"):
        read_breaks(tmp_path / "twice.toml")


def test_a_call_that_wakes_is_left_out_by_itself(tmp_path: Path) -> None:
    """Also where the same call stands twice; not where the list changes it, nor in a longer statement."""
    path = tmp_path / "src/fairlead/core/acts/act.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "def act(queue):\n    queue.touch()\n    if queue:\n        queue.touch()\n    found = queue.look()\n"
    )
    file = path.relative_to(tmp_path).as_posix()
    first, second = left_out([], tmp_path)
    assert [first.name, second.name] == [f"core/acts/act: act without queue.touch(){n}" for n in ("", " (2)")]
    assert broken_text(first, tmp_path).count("    pass\n    if queue") == 1
    assert broken_text(second, tmp_path).count("        pass\n    found") == 1
    listed = Break("twice", file, "if queue:\n        queue.touch()", "if queue:\n        return")
    assert [each.name for each in left_out([listed], tmp_path)] == [first.name]


def test_what_is_held_to_be_needless_is_there() -> None:
    """A call that is gone, or has another name, is none any more."""
    names = {each.name for each in left_out(LISTED, needless=())}
    assert set(NEEDLESS) <= names
    assert len(names) > 100
    called = {name.rpartition("without ")[2].partition("(")[0].rpartition(".")[2] for name in names}
    assert called <= WAKING | {"set"}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_break_is_found_by_the_check_that_sees_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The first that fails is named; with none it is told; the checkout stays as it was."""
    before = (ROOT / A_BREAK.file).read_text()
    assert run([A_BREAK], (BLIND, QUICK)) == 0
    assert "a break" in (said := capsys.readouterr().out)
    assert QUICK.name in said
    assert run([A_BREAK], (BLIND,)) == 1
    assert "NOTHING" in capsys.readouterr().out
    assert (ROOT / A_BREAK.file).read_text() == before
