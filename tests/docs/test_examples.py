"""The examples in `docs/queues` do what the page says."""

from __future__ import annotations

import pytest
from worked_examples import Example, Performance, pages, read_page

READ = [read_page(path) for path in pages()]
EXAMPLES = [example for _, examples in READ for example in examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_it_happens_as_the_page_says(example: Example) -> None:
    """Every line of the example, in order."""
    Performance(example).go()
