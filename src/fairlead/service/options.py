"""What `fairlead up` is told, with its defaults.

Decides nothing: the usual places are those of `places`. Never opens anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fairlead.places import DEFAULT_PORT, default_socket, default_state_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How to serve."""

    config: Path | None = None
    """The queue file, watched for changes; None: what is in the journal, or the built-in one the first time."""
    config_poll_s: float = 1.0
    """Between two looks at it. A change counts when two looks find the same."""
    state_dir: Path = field(default_factory=lambda: Path(default_state_dir()))
    host: str = "127.0.0.1"
    port: int | None = DEFAULT_PORT
    """TCP port; 0: any free one; None: no TCP at all."""
    socket: Path | None = field(default_factory=lambda: Path(default_socket()))
    """Unix socket; None: none."""
    admins: tuple[str, ...] = ()
    """Users who may see and stop everybody's jobs, beside root and the service's own user."""
    open_reads: bool = False
    """Let everybody read /ws/v1 and /metrics over TCP without a token."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """Amounts to give out instead of those found: `vcore` in thousandths, `memory` in bytes, `gpu`, or any other."""
    memory_pressure: str = "5%"
    """Below so much free memory (a part, or an amount such as `512Mi`) jobs are stopped, one by one; `off`: never."""
    memory_budget: int | None = None
    """Bytes that all jobs together may use, instead of what the machine has; None: that."""
    log_level: str = "info"
    on_ready: Callable[[Listening], None] | None = None
    """Called once, when requests are answered."""
    handle_signals: bool = True
    """Stop on SIGTERM and SIGINT; False for a service in a thread of another program."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a service answers."""

    socket: Path | None
    url: str | None
    stop: Callable[[], None]
    """Stop in order; may be called from any thread."""
