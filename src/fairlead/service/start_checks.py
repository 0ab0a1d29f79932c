"""What would keep a service from starting, found before anything of it is made.

Decides whether what it was told can be. Never makes or changes anything: an address is tried, and let go of at once.
Invariant: a start that is refused here leaves no trace, neither a state directory nor a socket nor a note for the next
start.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.config import file_text, usable
from fairlead.core.model.decisions import ConfigurationRejected
from fairlead.core.model.events import Configure
from fairlead.local import accounts
from fairlead.local.pressure import Threshold, parse_threshold
from fairlead.places import journal_of
from fairlead.scheduler import Scheduler
from fairlead.service.http.sockets import Tcp, require_free

if TYPE_CHECKING:
    from fairlead.service.serve import ServeOptions


class StartError(Exception):
    """The service cannot start; one sentence that says why and what to do."""


def looked_at(options: ServeOptions) -> tuple[Threshold, Tcp]:
    """What some options mean. Raises `StartError`, `ListenError` and `ConfigurationError` for what is wrong."""
    try:
        threshold = parse_threshold(options.memory_pressure)
    except ValueError as problem:
        raise StartError(f"memory pressure: {problem}") from None
    if options.memory_budget == 0:
        raise StartError("--memory-budget: with 0 no job could use any memory; leave it out where all of it is theirs")
    unknown = [name for name in options.admins if accounts.by_name(name) is None]
    if unknown:
        raise StartError(f"--admin: this machine has no user {unknown[0]!r}; name one that it has")
    if options.socket is None and options.port is None:
        raise StartError("there is neither a socket nor a port to listen on; give one of them")
    tcp = Tcp.of(options.host, options.tls_cert, options.tls_key, allow_plain=options.allow_plain_http)
    if options.config is not None:
        _require_watchable(options.config)
        if not journal_of(options.state_dir).exists():
            # Where something has been in force before, that stays, whatever the file says.
            _try_out(options.config)
    if options.socket is not None:
        require_free(options.socket.absolute())
    if options.port is not None:
        tcp.listen(options.port).close()
    return threshold, tcp


def _require_watchable(path: Path) -> None:
    """Raises `StartError` for a pipe or a device: what it says is read once, or waited for for ever."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise StartError(f"--config: {path} is no file that can be watched; write what it says into one")


def _try_out(path: Path) -> None:
    """Have a scheduler that nobody uses take this queue file. Raises `StartError` and `ConfigurationError`."""
    scheduler = Scheduler()
    for decision in scheduler.handle(Configure(usable(file_text(path), str(path))), 0):
        if isinstance(decision, ConfigurationRejected):
            raise refused(decision.reason.sentence())


def refused(why: str) -> StartError:
    """The scheduler does not take the queue file, or the machine."""
    return StartError(f"the scheduler refuses to start with this: {why}")
