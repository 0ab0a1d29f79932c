"""When all that waits for room is expected to start: `fairlead when` without a key.

Decides how it is shown, with how often such forecasts came true. Never asks for more than the first of the line.
Invariant: what is not in sight is a dash, and how many were left out is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cli import app, expected, render
from fairlead.cli.render import Column, Screen
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.pages import ExpectedStart, InLine

MOST = 200
"""So many starts does a service tell at once."""
SPEND_S = 5.0
"""As long as for a single job, where nothing is said."""
_COLUMNS = (
    Column("PLACE", right=True),
    Column("KEY"),
    Column("NAME", least=10),
    Column("USER", least=6, drop=1),
    Column("QUEUE", least=12, keep_end=True),
    Column("EARLIEST"),
    Column("LIKELY"),
    Column("LATEST"),
)


def print_starts(client: Client, seconds: float | None, output: str) -> None:
    """One line for each of those that are looked at first; as JSON what the service said of their starts."""
    told = client.line_forecast(limit=MOST, seconds=SPEND_S if seconds is None else seconds)
    if render.write_value(told, output):
        return
    starts = {each.key: each for each in told.starts}
    page = client.line(limit=MOST)
    screen = Screen.of()
    if page.line:
        render.table(screen, _COLUMNS, [_row(each, starts.get(each.key)) for each in page.line])
    else:
        app.complain("nothing waits for room")
    for line in expected.score_lines(client.score()):
        screen.line(line)
    if page.total > len(page.line):
        app.complain(
            f"these are the first {len(page.line)} of {page.total}; `fairlead when KEY` says when another one starts"
        )


def _row(each: InLine, start: ExpectedStart | None) -> list[str]:
    moments = [render.moment(getattr(start, f"{name}_ms", None)) for name in ("earliest", "median", "latest")]
    if start is not None and not start.known:
        moments[0] = "not known yet"
    return [str(each.place), each.key, each.name, each.user, each.queue, *moments]
