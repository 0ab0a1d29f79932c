"""By job: what is answered about asks, in the names that people know.

Decides that the attempts of a job (`17#2`) are called as it is: no order and no list knows another name. Never asks
anything. Invariant: nothing but such names changes; a queue file keeps its text.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_ATTEMPT = re.compile(r"(?<![\w.:#@-])(\d+(?:\.\d+)?)#\d+(?![\w#])")
AS_IT_IS = ("difference",)
"""Fields with the text of a queue file."""


def by_job(said: T) -> T:
    """The same answer, a shape of `wire` or a part of one."""
    return _by_job(said)  # type: ignore[no-any-return]


def _by_job(said: Any) -> Any:
    if isinstance(said, str):
        return _ATTEMPT.sub(r"\1", said)
    if isinstance(said, list):
        return [_by_job(each) for each in said]
    if isinstance(said, dict):
        return {_by_job(name): _by_job(value) for name, value in said.items()}
    if isinstance(said, msgspec.Struct):
        told = {name: _by_job(getattr(said, name)) for name in said.__struct_fields__ if name not in AS_IT_IS}
        return msgspec.structs.replace(said, **told)
    return said
