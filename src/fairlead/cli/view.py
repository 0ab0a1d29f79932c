"""`fairlead sim view`: the pages of a recorded course.

Decides nothing but what the words of the command mean, and says where the pages are. Never asks a service.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from fairlead.cli.app import Failure, Status, command
from fairlead.places import journal_file

_EXAMPLES = """
fairlead sim run --workload heavy-tails --nodes 20 --record course.db && fairlead sim view course.db
fairlead sim view .fairlead
"""


@command("view", examples=_EXAMPLES)
@click.argument(
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What sim run --record wrote, a journal, or the state directory of a service.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="TCP port of the pages [any free one]."
)
@click.option("--print", "only_print", is_flag=True, help="Print the address, and open nothing.")
def view(file: Path, port: int, only_print: bool) -> Status:
    """Look at a recorded course in a browser: line, nodes and queues at any moment of it.

    A slider goes to any moment, and it plays at any speed; what was decided then, and why, stands beside. It changes
    nothing, and ends with Ctrl-C. A service may be writing the journal: what is there at the start is shown.
    """
    for module in ("nicegui", "fastapi"):
        if importlib.util.find_spec(module) is None:
            raise Failure(f"the pages need {module}, which is not installed; run: pip install 'fairlead[service,web]'")
    from fairlead.service.recorded.serve import serve_course

    def ready(address: str) -> None:
        print(address, flush=True)
        if not only_print:
            from fairlead.cli.web import open_in_browser

            open_in_browser(address)

    if why_not := serve_course(journal_file(file), port, ready):
        raise Failure(why_not)
    return None
