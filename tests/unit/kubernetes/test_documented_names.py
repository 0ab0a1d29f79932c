"""The page on Kubernetes names every label and annotation that is read, and none that is not."""

from __future__ import annotations

import re
from pathlib import Path

from fairlead.kubernetes.admission import pods as rules
from fairlead.kubernetes.translate import identity

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "kubernetes.md").read_text(encoding="utf-8")
OURS_ALONE = {identity.PLACEHOLDER}
"""What only the scheduler itself writes."""


def test_every_label_and_annotation_is_on_the_page() -> None:
    """What is read from pods and namespaces."""
    read = {
        value
        for module in (identity, rules)
        for name, value in vars(module).items()
        if name.isupper()
        and isinstance(value, str)
        and re.fullmatch(r"(yunikorn\.apache|fairlead)\.\w+/[\w.-]+", value)
    }
    assert len(read) > 10
    assert sorted(name for name in read - OURS_ALONE if f"`{name}`" not in PAGE) == []
    assert [
        name
        for name in (*identity.APP_ID_LABELS, identity.QUEUE, *identity.QUEUE_OLD_LABELS)
        if f"`{name}`" not in PAGE
    ] == []


def test_the_page_names_nothing_that_is_not_read() -> None:
    """No label of these domains that the source does not know."""
    source = (
        "".join(path.read_text(encoding="utf-8") for path in Path(identity.__file__).parents[1].rglob("*.py"))
        .replace("{DOMAIN}", identity.DOMAIN)
        .replace("{identity.DOMAIN}", identity.DOMAIN)
    )
    named = set(re.findall(r"`((?:yunikorn\.apache\.org|fairlead\.io)/[\w.-]+)`", PAGE))
    assert sorted(name for name in named if name not in source) == []
