"""`fairlead web`: open the pages as whoever calls.

Decides nothing. Invariant: the ticket in the address is good once, for a minute, and stands nowhere else.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

import click

from fairlead.cli.app import Failure, command, connected
from fairlead.client.sync import Client

if TYPE_CHECKING:
    from fairlead.wire.pages import Ticket

_EXAMPLES = """
fairlead web
fairlead web --print
"""


def way_in(ticket: Ticket) -> str:
    """The address that opens the pages, once; empty where there are none."""
    return f"{ticket.url}/enter?ticket={ticket.ticket}" if ticket.url else ""


@command("web", examples=_EXAMPLES)
@click.option("--print", "only_print", is_flag=True, help="Print the address, and open nothing.")
@connected
def web(client: Client, only_print: bool) -> None:
    """Open the pages in a browser.

    Prints an address that is good once and for a minute; it opens the pages as you. From another computer: forward the
    port of the pages first (`ssh -L 9081:localhost:9081 HOST`), then open the address there.
    """
    ticket = client.ticket()
    if not ticket.url:
        raise Failure(f"this service serves no pages: {ticket.why_none}")
    address = way_in(ticket)
    print(address, flush=True)
    if not only_print:
        open_in_browser(address)


def open_in_browser(address: str) -> None:
    """Where somebody sits before a screen."""
    if sys.stdout.isatty() and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        import webbrowser

        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(address)
