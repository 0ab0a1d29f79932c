"""HTML as values: elements made of text and other elements.

Decides that every text is escaped. Never knows what is shown. Invariant: only what `element` made is taken for HTML;
all other text, whoever wrote it, comes out as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from html import escape

VOID = frozenset({"br", "hr", "img", "input", "meta", "link", "rect", "line", "path", "circle"})


class Html(str):
    """A text that is HTML."""

    __slots__ = ()


Child = str | int | float | None | Iterable["Child"]
Value = str | int | float | bool | None
EMPTY = Html("")


def element(name: str, /, *children: Child, **attributes: Value) -> Html:
    """`<name attributes>children</name>`. Of an attribute's name a `_` at its end goes, others become `-`; False and
    None leave it out, True gives it no value.
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID and not children:
        return Html(f"<{name}{given}>" if name not in ("rect", "line", "path", "circle") else f"<{name}{given}/>")
    return Html(f"<{name}{given}>{''.join(_text(child) for child in children)}</{name}>")


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str | int | float):
        return escape(str(child), quote=False)
    return "".join(_text(each) for each in child)


def joined(*children: Child) -> Html:
    """Several one after the other."""
    return Html("".join(_text(child) for child in children))


div = partial(element, "div")
span = partial(element, "span")
p = partial(element, "p")
a = partial(element, "a")
strong = partial(element, "strong")
code = partial(element, "code")
button = partial(element, "button", type="button")
h1, h2, h3 = partial(element, "h1"), partial(element, "h2"), partial(element, "h3")
ul, ol, li = partial(element, "ul"), partial(element, "ol"), partial(element, "li")
dl, dt, dd = partial(element, "dl"), partial(element, "dt"), partial(element, "dd")
section = partial(element, "section")
