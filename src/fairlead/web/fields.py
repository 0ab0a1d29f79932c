"""Fields of forms: how one is drawn, and how what was typed into it is read.

Decides what an amount, a number, a time, a list of keys looks like when people type it. Never checks what the service
checks. Invariant: what cannot be read is a `ValueError` whose sentence names the field and says what to write.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from fairlead.core.model.quantities import QuantityError, parse_quantity, resource_called
from fairlead.web.html import Child, Html, div, element, span

_DECIMAL = re.compile(r"(\d{1,40}\.\d{1,40})([A-Za-z]*)", re.ASCII)


def labelled(
    words: str, of: str, tag: str = "input", *inside: Child, hint: str = "", kind: str = "text", **given: Any
) -> Html:
    """A field with its name above it and a hint below."""
    if tag == "input":
        given["type"] = kind
    field = element(
        tag, *inside, **{"id": f"f-{of}", "name": of, "aria_describedby": f"h-{of}" if hint else None, **given}
    )
    note = span(hint, id=f"h-{of}", class_="quiet small") if hint else None
    return div(element("label", words, for_=f"f-{of}"), field, note, class_="labelled")


def amount_of(name: str, text: str) -> int:
    """`0.5` or `500m` cores, `4Gi` or `1.5Gi` of memory; never rounded."""
    resource = resource_called(name)
    try:
        if not (decimal := _DECIMAL.fullmatch(text)):
            return parse_quantity(resource, text)
        found = Fraction(decimal[1]) * parse_quantity(resource, f"1{decimal[2]}")
        if found.denominator == 1:
            return int(found)
    except QuantityError:
        pass
    example = {"cpu": "2 or 0.5", "memory": "4Gi or 500Mi"}.get(name, "1")
    raise ValueError(f"{name}: {text!r} is no amount; write for example {example}")


def whole_of(field: str, text: str) -> int:
    """A whole number."""
    try:
        return int(text.strip())
    except ValueError:
        raise ValueError(f"{field}: {text!r} is no whole number") from None


def read_by(field: str, read: Any, *given: Any) -> int:
    """What `read` makes of it, such as a time."""
    try:
        found: int = read(*given)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None
    return found


def keys_of(text: str) -> list[str]:
    """Keys of jobs, with commas or spaces between them."""
    return [key for key in re.split(r"[,\s]+", text) if key]


def variables_of(text: str) -> dict[str, str]:
    """`NAME=value`, one a line."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if line.strip():
            if not equals or not name:
                raise ValueError(f"Variables: {line.strip()!r} is not NAME=value")
            found[name] = value
    return found
