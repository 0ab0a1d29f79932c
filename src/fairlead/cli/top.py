"""`fairlead top`: a live view in the terminal, plain lines elsewhere.

Decides when to look again (when the service says that something happened, and every two seconds) and how to leave (q or
Ctrl-C). Never changes anything at the service. Invariant: the terminal is left as it was found.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import click

from fairlead.cli.app import SECONDS_BETWEEN, command, connected, queue_option
from fairlead.cli.filters import require_queue
from fairlead.cli.frame import LATEST, QUEUES, RUNNING, WAITING, frame
from fairlead.cli.watch import View, Watcher
from fairlead.client.errors import Unreachable
from fairlead.client.sync import Client
from fairlead.times import clock_time

_REFRESH_S = 2.0
_LEAST_PAUSE_S = 0.15
"""Between two looks, so that a busy service is not asked all the time."""
_TICK_S = 0.1
_PARTS = {"u": QUEUES, "r": RUNNING, "w": WAITING, "l": LATEST}
"""Keys after which one part has the whole screen."""
_KEYS = "q leaves   w waiting   r running   u queues   l latest   a all"


@command("top", examples="fairlead top\nfairlead top | tee changes.log     (one line a change)")
@queue_option
@click.option(
    "--interval",
    "-i",
    type=SECONDS_BETWEEN,
    default=_REFRESH_S,
    metavar="SECONDS",
    help="Look at least this often.",
)
@connected
def top(client: Client, queue: str | None, interval: float) -> None:
    """Watch live who runs, who waits and why.

    Leave with q or Ctrl-C; w, r, u and l show only what waits, what runs, the queues, or what happened, and a
    all of it. Without a terminal it prints one line for each change, until stopped.
    """
    next(client.nodes(), None)  # A service that is away later is waited for; one that is not there now is an error.
    if queue is not None:
        require_queue(client, queue)
    watcher = Watcher(client, queue)
    watcher.listen()
    try:
        if sys.stdout.isatty():
            live(watcher, interval, f"fairlead at {client.address}", [_KEYS], leave_on_q=True)
        else:
            print_changes(watcher, interval)
    finally:
        watcher.stop()


def print_changes(watcher: Watcher, interval: float = _REFRESH_S, until: Callable[[], bool] = lambda: False) -> None:
    """Print a line for each change until `until` says so."""
    for _view, lines in looks(watcher, interval, until):
        for line in lines:
            print(line)
        sys.stdout.flush()


def looks(
    watcher: Watcher, interval: float, until: Callable[[], bool] = lambda: False
) -> Iterator[tuple[View | None, list[str]]]:
    """Look after look, until `until` says so; then once more, so that the end is seen too.

    While the service is away (it may be restarting) there is a line about it, and no view.
    """
    away = last = False
    while True:
        try:
            view, lines = watcher.look()
            yield view, (["The service is back.", *lines] if away else lines)
            away = False
        except Unreachable as problem:
            if not away:
                yield None, [f"{problem.message} Trying again."]
            away = True
        if last:
            return
        pause_until = time.monotonic() + interval
        while not (last := until()) and time.monotonic() < pause_until and not watcher.wait(_TICK_S):
            yield None, []
        if not last:
            time.sleep(_LEAST_PAUSE_S)


def live(
    watcher: Watcher,
    interval: float,
    title: str,
    footer: Sequence[str],
    *,
    leave_on_q: bool = False,
    whole_screen: bool = True,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Draw the view again and again until q (if asked for), Ctrl-C, or `until` says so."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    recent: deque[str] = deque(maxlen=8)
    view: View | None = None
    away = ""
    console = Console()
    colour = not os.environ.get("NO_COLOR")
    with _keys(leave_on_q) as pressed, Live(console=console, screen=whole_screen, auto_refresh=False) as display:
        for seen, lines in looks(watcher, interval, lambda: until() or pressed() == "q"):
            if lines and seen is None:
                away = f": no answer since {clock_time(int(time.time() * 1000))}; seen"
            view, away = seen or view, "" if seen else away
            recent.extend(lines)
            if view is None:
                view = View(int(time.time() * 1000))
            size = shutil.get_terminal_size()
            drawn = frame(
                view,
                size.columns,
                size.lines - 1,
                colour=colour,
                title=title + away,
                recent=list(recent),
                footer=footer,
                only=_PARTS.get(pressed()) if leave_on_q else None,
            )
            display.update(Text.from_ansi("\n".join(drawn), no_wrap=True, overflow="crop"), refresh=True)


@contextlib.contextmanager
def _keys(wanted: bool) -> Iterator[Callable[[], str]]:
    """A function that says which key was pressed last (q stays); the terminal hands over keys one by one meanwhile."""
    if not wanted or not sys.stdin.isatty():
        yield lambda: ""
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    last = ""

    def pressed() -> str:
        nonlocal last
        ready, _, _ = select.select([descriptor], [], [], 0)
        last = os.read(descriptor, 1).decode(errors="replace") if ready and last != "q" else last
        return last

    try:
        tty.setcbreak(descriptor)
        yield pressed
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
