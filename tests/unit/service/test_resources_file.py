"""What a machine was declared to have survives a restart without the option."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.service.resources_file import ResourcesFile

FOUND = {"vcore": 8000, "memory": 2**34, "gpu": 0}


def start(path: Path, given: dict[str, int] | None) -> tuple[dict[str, int], str]:
    """What counts as declared, and what is said."""
    file = ResourcesFile(path)
    declared = file.declared(given)
    return declared, file.note(declared, {**FOUND, **declared})


def test_what_was_declared_last_counts_until_something_else_is(tmp_path: Path) -> None:
    """And what is different is said once, with both figures."""
    path = tmp_path / "resources.json"
    assert start(path, {}) == ({}, "")
    changed = "this machine has gpu 2 now and had gpu 0 at the last start; if that is not so, say what it has with"
    assert start(path, {"gpu": 2}) == ({"gpu": 2}, f"{changed} --resource")
    assert start(path, {}) == ({"gpu": 2}, "")
    declared, said = start(path, {"vcore": 4000})
    assert declared == {"vcore": 4000}
    assert "has cpu 4, gpu 0 now and had cpu 8, gpu 2 at" in said
    declared, said = start(path, None)
    assert (declared, "has cpu 8 now and had cpu 4 at" in said) == ({}, True)
    assert start(path, {}) == ({}, "")


def test_a_file_that_makes_no_sense_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And stops nothing."""
    path = tmp_path / "resources.json"
    path.write_text("{half")
    assert start(path, {}) == ({}, "")
    assert "has to be declared again" in caplog.text
    assert start(path, {}) == ({}, "")
    assert caplog.text.count("has to be declared again") == 1
