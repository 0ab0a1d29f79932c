"""`fairlead.collector`: when Python searches for garbage."""

import gc
from contextlib import suppress

from fairlead.collector import collector_off, rare_collections


def test_off_inside_and_as_before_outside() -> None:
    with collector_off():
        assert not gc.isenabled()
        with collector_off():
            assert not gc.isenabled()
        assert not gc.isenabled(), "it was off when the inner one began"
    assert gc.isenabled()


def test_rare_collections_end_with_what_they_are_for() -> None:
    before = gc.get_threshold()
    with suppress(ZeroDivisionError), rare_collections():
        assert gc.get_threshold() > before
        raise ZeroDivisionError
    assert gc.get_threshold() == before
