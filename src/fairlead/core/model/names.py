"""Names: what queues, users, groups and declared things may be called.

Decides which texts are names (those that a pattern here matches as a whole), nothing else; every reader of names asks
here. The rules are YuniKorn's (and Kubernetes' for what comes from there): access lists take fewer characters than
limits and filters do, so that a user such as `a:b` can have a limit but is on no access list.
"""

from __future__ import annotations

import re

QUEUE_NAME = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")
QUEUE_PATH = re.compile(rf"{QUEUE_NAME.pattern}(?:\.{QUEUE_NAME.pattern})*")
USER_NAME = re.compile(r"[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?")
GROUP_NAME = re.compile(r"[_a-zA-Z][a-zA-Z0-9:_.-]*")
ACL_USER = re.compile(r"[_a-zA-Z][a-zA-Z0-9_.@-]*[$]?")
ACL_GROUP = re.compile(r"[_a-zA-Z][a-zA-Z0-9_-]*")

QUEUE_NAME_RULE = (
    "invalid queue name, max 64 characters consisting of alphanumeric characters and "
    "'-', '_', '#', '@', '/', ':' allowed"
)
_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
SUBDOMAIN = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
"""What priority classes, quotas and budgets may be called, by Kubernetes' rule."""
SUBDOMAIN_RULE = (
    "use lower-case letters, digits, - and . (a DNS subdomain, at most 253 characters), such as high-priority"
)
EXPRESSION_SIGNS = frozenset("^$*+?()[{}|")
"""A single entry of a filter's list that has one of these is an expression, not a name."""
