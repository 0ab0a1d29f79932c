"""Fairlead: who runs where and when, by priority and fairness, and why.

What a program needs to use the scheduler as a library, by one name each. A name is imported when it is first used, so
that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.config import ConfigurationError, load_text
    from fairlead.core.model.constraints import AffinityTerm, Constraints, Requirement, SpreadTerm, Taint, Toleration
    from fairlead.core.model.events import Cause, LabelNode, Release
    from fairlead.core.model.resources import Limits, Resources
    from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, RetrySpec
    from fairlead.library.callbacks import (
        AllocationResponse,
        ApplicationResponse,
        NodeResponse,
        ResourceManagerCallbacks,
        SilentCallbacks,
    )
    from fairlead.library.service import (
        ConfigurationRefused,
        NotRegistered,
        RegistrationFailed,
        SchedulerService,
        ServiceClosed,
    )
    from fairlead.scheduler import Scheduler

_HOMES = {
    "AffinityTerm": "fairlead.core.model.constraints",
    "AllocationResponse": "fairlead.library.callbacks",
    "ApplicationResponse": "fairlead.library.callbacks",
    "ApplicationSpec": "fairlead.core.model.specs",
    "AskSpec": "fairlead.core.model.specs",
    "Cause": "fairlead.core.model.events",
    "ConfigurationError": "fairlead.config",
    "ConfigurationRefused": "fairlead.library.service",
    "Constraints": "fairlead.core.model.constraints",
    "LabelNode": "fairlead.core.model.events",
    "Limits": "fairlead.core.model.resources",
    "NodeResponse": "fairlead.library.callbacks",
    "NodeSpec": "fairlead.core.model.specs",
    "NotRegistered": "fairlead.library.service",
    "RegistrationFailed": "fairlead.library.service",
    "Release": "fairlead.core.model.events",
    "Requirement": "fairlead.core.model.constraints",
    "ResourceManagerCallbacks": "fairlead.library.callbacks",
    "Resources": "fairlead.core.model.resources",
    "RetrySpec": "fairlead.core.model.specs",
    "Scheduler": "fairlead.scheduler",
    "SchedulerService": "fairlead.library.service",
    "ServiceClosed": "fairlead.library.service",
    "SilentCallbacks": "fairlead.library.callbacks",
    "SpreadTerm": "fairlead.core.model.constraints",
    "Taint": "fairlead.core.model.constraints",
    "Toleration": "fairlead.core.model.constraints",
    "load_text": "fairlead.config",
}

__all__ = [
    "AffinityTerm",
    "AllocationResponse",
    "ApplicationResponse",
    "ApplicationSpec",
    "AskSpec",
    "Cause",
    "ConfigurationError",
    "ConfigurationRefused",
    "Constraints",
    "LabelNode",
    "Limits",
    "NodeResponse",
    "NodeSpec",
    "NotRegistered",
    "RegistrationFailed",
    "Release",
    "Requirement",
    "ResourceManagerCallbacks",
    "Resources",
    "RetrySpec",
    "Scheduler",
    "SchedulerService",
    "ServiceClosed",
    "SilentCallbacks",
    "SpreadTerm",
    "Taint",
    "Toleration",
    "load_text",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fairlead' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
