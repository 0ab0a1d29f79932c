"""Links within the documentation lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ +(.+?) *$", _FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path, text: str) -> list[str]:
    """Links to files or headings that are not there."""
    found = []
    for link in _LINK.findall(_FENCED.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(read(target, page, text))):
            found.append(link)
    return found


def read(target: Path, page: Path, text: str) -> str:
    return text if target == page else target.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every file is there, and every heading."""
    assert not broken(page, page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("link", ["nothing.md", "#no-such-heading", "ARCHITECTURE.md#no-such-heading"])
def test_a_broken_link_is_found(link: str) -> None:
    """The check sees what it claims to see."""
    assert broken(ROOT / "README.md", f"# A heading\n[x]({link}) [y](#a-heading) [z](LICENSE)") == [link]
