"""The queue file in its ConfigMap: a wrong one is refused before it is stored.

Decides whether a ConfigMap is the one that holds the queues, and whether what it holds can be used. Never puts it in
force.
"""

from __future__ import annotations

from typing import Any

from fairlead.config import ERROR, check_text
from fairlead.kubernetes.admission.review import ALLOWED, INVALID, Question, Verdict

KEY = "queues.yaml"
SHOWN = 20
"""Problems that are told at most."""


def review(question: Question, config_map: str) -> Verdict:
    """Whether a change of a ConfigMap is taken; `config_map` is the `namespace/name` of the queue file."""
    if question.kind.kind != "ConfigMap" or question.operation not in ("CREATE", "UPDATE"):
        return ALLOWED
    thing: Any = question.object if isinstance(question.object, dict) else {}
    name = question.name or (thing.get("metadata") or {}).get("name") or ""
    if f"{question.namespace}/{name}" != config_map:
        return ALLOWED
    text = (thing.get("data") or {}).get(KEY)
    if not isinstance(text, str):
        return Verdict(False, f"configmap {config_map} needs the key {KEY} with the queue file", INVALID)
    problems = check_text(text, KEY)
    errors = [str(problem) for problem in problems if problem.severity == ERROR]
    others = tuple(str(problem) for problem in problems if problem.severity != ERROR)[:SHOWN]
    if not errors:
        return Verdict(warnings=others)
    more = [f"... and {len(errors) - SHOWN} more"] if len(errors) > SHOWN else []
    return Verdict(False, "\n".join(["the queue file cannot be used:", *errors[:SHOWN], *more]), INVALID)
