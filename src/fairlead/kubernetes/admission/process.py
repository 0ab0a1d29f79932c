"""One process of the webhook, from its options to an orderly end.

Decides with which status it ends. Invariant: on SIGTERM and SIGINT reviews that are under way are answered first.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

from fairlead.kubernetes.access import Access, AccessError, find_access
from fairlead.kubernetes.admission.server import WebhookOptions, serve
from fairlead.kubernetes.client import ApiError, Unreachable
from fairlead.runtime.process import log_to_stderr

log = logging.getLogger("fairlead.kubernetes")


def serve_webhook(
    options: WebhookOptions, kubeconfig: str | None = None, context: str | None = None, log_level: str = "info"
) -> int:
    """Serve until SIGTERM or SIGINT; the exit status: 0 after an orderly stop, 1 if it could not start or go on."""
    log_to_stderr(log_level)
    try:
        asyncio.run(_until_told(find_access(kubeconfig, context), options))
    except (AccessError, Unreachable) as problem:
        return _failed(str(problem))
    except ApiError as problem:
        return _failed(f"the API server refuses what the webhook needs: {problem}; look at its Role and ClusterRole")
    except OSError as problem:
        return _failed(f"cannot listen on {options.host}:{options.port}: {problem.strerror or problem}")
    log.info("stopped")
    return 0


async def _until_told(access: Access, options: WebhookOptions) -> None:
    """Serve until a signal comes. Raises what ended the serving before."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, told.set)
    serving = asyncio.create_task(serve(access, options), name="serve")
    waiting = asyncio.create_task(told.wait(), name="wait for a signal")
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, waiting):
        task.cancel()
    await asyncio.gather(serving, waiting, return_exceptions=True)
    fault = None if serving.cancelled() else serving.exception()
    while isinstance(fault, ExceptionGroup):
        fault = fault.exceptions[0]
    if fault is not None:
        raise fault


def _failed(sentence: str) -> int:
    sys.stderr.write(f"fairlead: {sentence}\n")
    return 1
