"""Reasons: a code that follows from the name, and a sentence with the numbers."""

from __future__ import annotations

from dataclasses import fields
from string import Formatter

from fairlead.core.model import reasons
from fairlead.core.model.reasons import QueueFull, Reason, Refused

KINDS = [kind for kind in vars(reasons).values() if isinstance(kind, type) and issubclass(kind, Reason)]


def test_the_code_is_the_name_in_lower_case() -> None:
    """Programs compare it, so that it must not change by accident; no two are the same."""
    assert (QueueFull.code, Refused.code) == ("queue-full", "refused")
    assert len({kind.code for kind in KINDS}) == len(KINDS) > 25


def test_every_name_in_a_template_is_a_field() -> None:
    """Else the sentence could not be made."""
    for kind in KINDS:
        named = {name for _, name, _, _ in Formatter().parse(kind.template) if name}
        assert named <= {f.name for f in fields(kind)}, kind
        own_words = "_sentence" in vars(kind)
        assert kind is Reason or bool(kind.template) != own_words, f"{kind.__name__} needs a template or its own words"


def test_what_is_needed_is_rounded_up_and_what_is_free_down() -> None:
    """So that the two never look equal where too little is free."""
    gi = 1024**3
    full = QueueFull("root.a", {"memory": gi + 1}, {"memory": gi - 1}, {"memory": 2 * gi})
    assert full.sentence() == "needs memory 1.1Gi; queue root.a has memory 1023.9Mi left of its maximum memory 2Gi"
    assert full.as_dict() == {
        "code": "queue-full",
        "sentence": full.sentence(),
        "queue": "root.a",
        "needed": {"memory": gi + 1},
        "free": {"memory": gi - 1},
        "max": {"memory": 2 * gi},
    }
