"""Answers of `fairlead.insight` in the shapes of the wire.

Decides nothing: what the shapes do not have is refused, so that an answer is what is declared. Never asks anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fairlead.insight.forecast import Expected
from fairlead.insight.scorecard import Scorecard
from fairlead.wire import questions as wire
from fairlead.wire.jobs import reason


def verdict(plain: dict[str, Any]) -> wire.Verdict:
    """A verdict."""
    return msgspec.convert(plain | {"reason": reason(plain["reason"])}, wire.Verdict)


def otherwise(supposed: str, plain: dict[str, Any]) -> wire.Otherwise:
    """What would be otherwise."""
    waits = [each | {"reason": reason(each["reason"])} for each in plain["waits"]]
    refused = [reason(each) for each in plain["refused"]]
    return msgspec.convert(plain | {"supposed": supposed, "waits": waits, "refused": refused}, wire.Otherwise)


def when(
    key: str, made_ms: int, expected: Expected, draws: int, assumptions: Sequence[str], card: Scorecard
) -> wire.When:
    """When a job is expected to start."""
    shown = {name: value for name, value in expected.as_dict().items() if name in wire.When.__struct_fields__}
    more = {"key": key, "made_ms": made_ms, "draws": draws, "assumptions": list(assumptions)}
    return wire.When(**shown | more, score=wire.Score(**card.as_dict()))
