"""What a machine was declared to have survives a restart without the option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead.local.gpus import Gpu
from fairlead.service.resources_file import ResourcesFile

FOUND = {"vcore": 8000, "memory": 2**34, "gpu": 0}


def start(path: Path, given: dict[str, int] | None, *what: Any) -> tuple[dict[str, int], str]:
    """What counts as declared, and what is said."""
    file = ResourcesFile(path)
    declared = file.declared(given)
    return declared, "; ".join(file.note(declared, {**FOUND, **declared}, *what))


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


def test_another_name_and_other_devices_are_said(tmp_path: Path) -> None:
    """Each with what it was; what is not known is not compared."""
    path = tmp_path / "resources.json"
    two = (Gpu(0, uuid="GPU-a", model="A40"), Gpu(1, uuid="GPU-b", model="A40"))
    assert start(path, {}, "lab", two)[1] == ""
    assert start(path, {}, "lab", two)[1] == ""
    changed = "GPU 1 is GPU-c A100 now and was GPU-b A40 at the last start"
    said = start(path, {}, "den", (two[0], Gpu(1, uuid="GPU-c", model="A100")))[1]
    assert said.startswith(f"{changed}; this machine is called den now and was called lab at the last start")
    assert start(path, {}, "den", (Gpu(0), Gpu(1)))[1] == ""


def test_a_file_that_makes_no_sense_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And stops nothing."""
    path = tmp_path / "resources.json"
    path.write_text("{half")
    assert start(path, {}) == ({}, "")
    assert "has to be declared again" in caplog.text
    assert start(path, {}) == ({}, "")
    assert caplog.text.count("has to be declared again") == 1
