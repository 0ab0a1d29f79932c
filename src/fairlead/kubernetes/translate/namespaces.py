"""Namespaces: what their annotations say about the queue that is made for them, in YuniKorn's words.

Decides which tags of an application follow from them. Never looks at queues: the tags count where the application's
queue was made by a placement rule, and what the queue file says is not touched.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from fairlead.kubernetes.translate.amounts import AmountError, amounts
from fairlead.kubernetes.translate.identity import DOMAIN, PARENT_QUEUE

log = logging.getLogger("fairlead.kubernetes")

QUOTA = f"{DOMAIN}namespace.quota"
QUOTA_CPU = f"{DOMAIN}namespace.max.cpu"
QUOTA_MEMORY = f"{DOMAIN}namespace.max.memory"
"""The two older words for a quota; `QUOTA` counts before them."""
GUARANTEED = f"{DOMAIN}namespace.guaranteed"
MAX_APPLICATIONS = f"{DOMAIN}namespace.maxApps"
LONGEST = 64 * 1024


def tags_of(notes: Mapping[str, str]) -> dict[str, str]:
    """The tags of an application whose namespace has these annotations. What cannot be read is said in the log."""
    quota = notes.get(QUOTA, "")
    if not quota:
        old = {"cpu": notes.get(QUOTA_CPU, ""), "memory": notes.get(QUOTA_MEMORY, "")}
        given = {name: value for name, value in old.items() if value}
        quota = msgspec.json.encode(given).decode() if given else ""
    found = {
        "namespace.parentqueue": notes.get(PARENT_QUEUE, ""),
        "namespace.resourcequota": _limits(QUOTA, quota),
        "namespace.resourceguaranteed": _limits(GUARANTEED, notes.get(GUARANTEED, "")),
        "namespace.resourcemaxapps": notes.get(MAX_APPLICATIONS, ""),
    }
    return {name: value for name, value in found.items() if value}


def _limits(name: str, text: str) -> str:
    """`{"cpu": "2"}` in the core's words and form."""
    if not text:
        return ""
    try:
        given = amounts(msgspec.json.decode(text[:LONGEST], type=dict[str, str | int | float]))
    except (msgspec.MsgspecError, AmountError) as e:
        log.warning("annotation %s of a namespace is passed over: %s", name, e)
        return ""
    return msgspec.json.encode({"resources": {key: {"value": value} for key, value in given.items()}}).decode()
