"""Why the scheduler stops work, in plain words.

Decides the words for each rule, the same in answers, stories of jobs, commands and pages. Never which rule it was: the
scheduler says so by its name, which answers have beside the words (`rule`).
"""

from __future__ import annotations

WORDS = {
    "priority": "{winner} has a higher priority",
    "guarantee": "the queue of {winner} has less than it is guaranteed",
    "reclaim": "it ran on what others leave over, and gives it back",
    "required-node": "{winner} can run on no other node",
    "quota": "its queue has to give back what it has above its maximum",
    "window": "a time begins in which its node is kept free",
    "taint": "its node has a taint that it does not tolerate",
    "placeholder": "it only kept room for others of its gang",
    "gang-deadlock": "its gang gives way to one that it held back, and comes back",
}
"""By the names that `Evict` gives the rules. "It" is what is stopped, the winner what it makes room for."""


def why_stopped(rule: str, *, winner: str = "that one") -> str:
    """The words for a rule; its name where there are none, and nothing for no rule."""
    said = WORDS.get(rule)
    return said.format(winner=winner) if said else f"by the rule {rule}" if rule else ""


def in_brackets(rule: str, *, winner: str = "that one") -> str:
    """The same after a space and in brackets, to stand behind a sentence; nothing for no rule."""
    return f" ({why_stopped(rule, winner=winner)})" if rule else ""
