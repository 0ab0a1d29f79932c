"""The public client of a Fairlead service: `Client`, and `AsyncClient` for programs with an event loop.

Decides how a service is found, asked and understood; what travels is in `fairlead.wire`. Never prints, never keeps what
it was told. A name is imported when it is first used, so that a command starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.client.address import Address, find_address
    from fairlead.client.asynchronous import AsyncClient
    from fairlead.client.errors import ClientError, Misconfigured, Refused, ServiceFailed, Unreachable, Untrusted
    from fairlead.client.sync import Client

_HOMES = {
    "Address": "address",
    "AsyncClient": "asynchronous",
    "Client": "sync",
    "ClientError": "errors",
    "Misconfigured": "errors",
    "Refused": "errors",
    "ServiceFailed": "errors",
    "Unreachable": "errors",
    "Untrusted": "errors",
    "find_address": "address",
}

__all__ = [
    "Address",
    "AsyncClient",
    "Client",
    "ClientError",
    "Misconfigured",
    "Refused",
    "ServiceFailed",
    "Unreachable",
    "Untrusted",
    "find_address",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fairlead.client' has no attribute {name!r}")
    return getattr(import_module(f"fairlead.client.{_HOMES[name]}"), name)
