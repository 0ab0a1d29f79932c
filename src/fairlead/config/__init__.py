"""Queue files: from YAML text to a validated `ClusterSpec`, with every problem and its place.

Decides which files are used and says what is wrong with the others. Never runs anything. Imports only `core`.
"""

from __future__ import annotations

from fairlead.config.declare import schema
from fairlead.config.decode import ERROR, WARNING, ConfigurationError, Problem
from fairlead.config.load import (
    check_text,
    checked,
    checksum_of,
    default_text,
    errors_of,
    file_text,
    load_file,
    load_text,
    problems_of,
    usable,
)

__all__ = [
    "ERROR",
    "WARNING",
    "ConfigurationError",
    "Problem",
    "check_text",
    "checked",
    "checksum_of",
    "default_text",
    "errors_of",
    "file_text",
    "load_file",
    "load_text",
    "problems_of",
    "schema",
    "usable",
]
