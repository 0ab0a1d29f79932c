"""The tables of docs/reference.md, made from the code.

A table stands between `<!-- table NAME -->` and `<!-- end -->`. Which rows it has, and what the code itself says of
each (defaults, what may be written, docstrings, fields), comes from the code. The columns that only a person can fill
are kept by row; a new row gets `TO DO` there, which the tests do not accept.

`PYTHONPATH=src python tests/reference_tables.py` brings the page up to date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path

from fairlead.config import admission, declare
from fairlead.core.books.queues import QueueState
from fairlead.core.model import reasons
from fairlead.core.model.decisions import DECISIONS
from fairlead.core.model.events import Cause
from fairlead.core.model.lifecycle import State
from fairlead.core.model.properties import KNOWN, PropertyRule, QueueProperties, inherited

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference.md"
TO_DO = "TO DO"
_TABLE = re.compile(r"<!-- table (\S+) -->\n(.*?)<!-- end -->", re.DOTALL)


@dataclass(frozen=True)
class Table:
    """A table: the heads of all columns, the rows as far as the code knows them; the rest is written by hand."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def written(self, by_hand: Mapping[str, tuple[str, ...]]) -> str:
        """As Markdown; `by_hand` are the last columns of each row, by its first cell."""
        hand = len(self.heads) - len(self.rows[0])
        lines = [self.heads, tuple("---" for _ in self.heads)]
        lines += [row + by_hand.get(row[0], (TO_DO,) * hand)[:hand] for row in self.rows]
        return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def cells_of(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1])


def code(text: str) -> str:
    return f"`{text}`"


def first_sentence(thing: type) -> str:
    """What a class says of itself, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split()).replace("|", "\\|")


def field_names(thing: type) -> str:
    return ", ".join(code(field.name) for field in fields(thing)) or "-"


# --- the tables ---


def keys(table: Mapping[str, object]) -> Table:
    """The keys of one level of the queue file."""
    return Table(("key", "what is written", "meaning"), tuple((code(key),) for key in table))


def default_text(rule: PropertyRule) -> str:
    default = getattr(QueueProperties(), rule.field)
    if isinstance(default, bool):
        said = {
            "priority_sorting": {True: "enabled"},
            "priority_fence": {False: "default"},
            "easy_backfill": {False: "free"},
        }
        default = said.get(rule.field, {}).get(default, str(default).lower())
    if default is None:
        return "off"
    if rule.field.endswith("_ms"):
        return f"{default // 1000}s" if default else "off"  # type: ignore[operator]
    return code(str(default))


_SAMPLES = ("fair", "disabled", "fence", "7", "7s", "true", "easy")


def inheritance(rule: PropertyRule) -> str:
    """Which values a configured child takes over."""
    tried = [text for text in _SAMPLES if rule.read(text) not in (None, getattr(QueueProperties(), rule.field))]
    passed = [text for text in tried if inherited({rule.key: text}, {}).get(rule.key) == text]
    return "yes" if passed == tried else f"only `{'`, `'.join(passed)}`" if passed else "no"


def place_of(rule: PropertyRule) -> str:
    """On which queues it means something."""
    return {True: "leaf", False: "parent", None: "any"}[rule.leaf]


def properties() -> Table:
    """The queue properties."""
    rows = tuple((code(r.key), r.allowed, default_text(r), place_of(r), inheritance(r)) for r in KNOWN.values())
    return Table(("property", "values", "default", "on", "inherited", "meaning"), rows)


def reason_types() -> Iterator[type[reasons.Reason]]:
    """Every reason that can be given, in the order of the module."""
    for thing in vars(reasons).values():
        if inspect.isclass(thing) and issubclass(thing, reasons.Reason) and thing is not reasons.Reason:
            yield thing


def reason_table() -> Table:
    """The codes of the reasons."""
    rows = tuple((code(r.code), first_sentence(r), field_names(r)) for r in reason_types())
    return Table(("code", "what it says", "its numbers", "what helps"), rows)


def decision_table() -> Table:
    """The types of decisions."""
    rows = tuple((code(d.__name__), first_sentence(d), field_names(d)) for d in DECISIONS)
    return Table(("decision", "what it says", "its fields"), rows)


def words(enumeration: type[Enum]) -> Table:
    """The words of an enumeration."""
    return Table(("word", "meaning"), tuple((code(str(word.value)),) for word in enumeration))


def tables() -> dict[str, Table]:
    """Every table of the page by its name."""
    levels = {
        "file": declare.FILE_KEYS,
        "partition": declare.PARTITION_KEYS,
        "nodesortpolicy": declare.NODE_SORT_KEYS,
        "preemption": declare.PREEMPTION_KEYS,
        "usergroupresolver": declare.RESOLVER_KEYS,
        "placementrules": declare.RULE_KEYS,
        "filter": declare.FILTER_KEYS,
        "queue": declare.QUEUE_KEYS,
        "resources": declare.RESOURCE_KEYS,
        "childtemplate": declare.TEMPLATE_KEYS,
        "limits": declare.LIMIT_KEYS,
        "priorityclasses": admission.CLASS_KEYS,
        "quotas": admission.QUOTA_KEYS,
        "scopes": admission.SCOPE_KEYS,
        "budgets": admission.BUDGET_KEYS,
        "selector": admission.SELECTOR_KEYS,
        "expressions": admission.EXPRESSION_KEYS,
    }
    return {name: keys(table) for name, table in levels.items()} | {
        "properties": properties(),
        "reasons": reason_table(),
        "decisions": decision_table(),
        "application-states": words(State),
        "queue-states": words(QueueState),
        "causes": words(Cause),
    }


def updated(page: str) -> str:
    """The page with every table as the code has it; raises `KeyError` for a table that the code does not know."""
    known = tables()

    def renew(found: re.Match[str]) -> str:
        table = known[found[1]]
        hand = len(table.heads) - len(table.rows[0])
        by_hand = {}
        for line in found[2].splitlines()[2:]:
            cells = cells_of(line)
            by_hand[cells[0]] = cells[-hand:] if hand else ()
        return f"<!-- table {found[1]} -->\n{table.written(by_hand)}<!-- end -->"

    return _TABLE.sub(renew, page)


def shown(page: str) -> list[str]:
    """The names of the tables that a page has, in order."""
    return [found[1] for found in _TABLE.finditer(page)]


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
