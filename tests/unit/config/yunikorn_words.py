"""The words in which Apache YuniKorn refuses a queue file, and what we say of the same thing.

A row: an expression for YuniKorn's words, and an expression for ours, where `{NAME}` is what the group NAME of the
first one matched. The first row that matches counts.
"""

from __future__ import annotations

import re

from fairlead.config import Problem

_SYNTAX = r"yaml: unmarshal errors:\s+line \d+: "
ROWS: tuple[tuple[str, str], ...] = (
    (r"found character that cannot start any token", "found character that cannot start any token"),
    (r"yaml: anchor '(?P<name>.*)' value contains itself", "the anchor &{name} contains itself"),
    (r"yaml: map merge requires map or sequence of maps", "<< merges a mapping"),
    (_SYNTAX + r"field (?P<name>\S+) not found in type", "unknown key {name}[; ]"),
    (
        _SYNTAX + r"mapping key \"(?P<name>.*)\" already defined at line (?P<line>\d+)",
        "the key {name} is already there",
    ),
    (_SYNTAX + r"cannot unmarshal !!\w+( `.*`)? into \[\]string", "needs a list of texts, not "),
    (_SYNTAX + r"cannot unmarshal !!\w+( `.*`)? into \[\]configs\.(?P<of>\w+)Config", "needs a list of "),
    (_SYNTAX + r"cannot unmarshal !!\w+( `.*`)? into configs\.", "needs a mapping with some of: "),
    (
        _SYNTAX + r"cannot unmarshal !!\w+( `(?P<value>.*?)(\.\.\.)?`)? into uint",
        "needs a whole number, .*not '{value}",
    ),
    (_SYNTAX + r"cannot unmarshal !!\w+( `(?P<value>.*)`)? into float", "needs a number .*not '{value}'"),
    (_SYNTAX + r"cannot unmarshal !!\w+( `(?P<value>.*)`)? into bool", "needs true or false .*not '{value}'"),
    (_SYNTAX + r"cannot unmarshal !!\w+( `.*`)? into string", "needs a text, not "),
    (r"invalid (?P<kind>quantity: overflow|quantity|suffix)$", "^invalid {kind}: '"),
    (r"duplicate partition name found with name (?P<name>\S+)", "a second partition named {name} "),
    (r"duplicate child name found with name '(?P<name>.*)', level", "has a second child named '{name}'"),
    (r"invalid queue name, max 64 characters", "(invalid queue name '|a queue needs a name)"),
    (r"multiple spaces found in ACL: '(?P<text>.*)'", "too many blanks in '{text}'"),
    (r"queue config is not set", "needs a list of queues"),
    (r"root queue must not have resource limits set", "the root queue is as large as all nodes together"),
    (r"partition cannot be created without root queue", "the root queue must be spelled root"),
    (r"partition limits and root queue limits are not equivalent", "both have limits, and they differ"),
    (r"empty user and group lists defined in limit", "a limit needs users or groups"),
    (r"invalid limit (?P<kind>user|group) name '(?P<name>.*)' in limit", "'{name}' is no {kind} name"),
    (r"duplicated (?P<kind>user|group) name '(?P<name>[^']*)'", "the {kind} {name} has a limit in this queue already"),
    (r"should not set no wildcard (?P<kind>user|group) (?P<name>\S+) after", r"the {kind} {name} comes after \*"),
    (r"should not specify only one group limit that is using the wildcard", r"a limit for all groups \(\*\) needs"),
    (r"MaxResources should be greater than zero in '.*' limit", "all values are 0; give at least one above 0"),
    (r"invalid resource combination for limit .* all resource limits are null", "the limit limits nothing"),
    (r"invalid MaxApplications settings for limit", r"is more than the \d+ of .* itself"),
    (r"invalid MaxResources settings for limit", "more than the maximum of .* itself"),
    (r"guaranteed resource of parent .* for queue (?P<queue>\S+)", r"the children of \S*\b{queue} are guaranteed "),
    (r"guaranteed resource .* is larger than .* for queue (?P<queue>\S+)", r"\b{queue} guarantees .* its maximum is"),
    (r"max resource of parent .* for queue (?P<queue>\S+)", r"the maximum of \S*\b{queue}, .* is above"),
    (r"maxApplications is either undefined or zero", "needs maxapplications from 1 to "),
    (r"parent maxApplications must be larger than child maxApplications", r"has \d+, more than the \d+ of "),
    (r"undefined policy: (?P<policy>.*)", "'{policy}' is no way to sort nodes"),
    (r"negative resource weight for (?P<name>\S+)", "the weight of {name} is negative"),
    (r"invalid rule name (?P<name>.*), a name must be", "'{name}' is no rule name"),
    (r"invalid rule filter type (?P<type>.*), filter", "'{type}' is no filter type"),
    (r"invalid rule filter (user|group) list .*: \[(?P<text>.*)\]$", "'{text}' matches nobody"),
    (r"illegal fully qualified 'fixed' rule with value (?P<value>\S+)", "'{value}' starts at the root but is below"),
    (r"references a queue \((?P<queue>\S+)\) which is not a leaf", "{queue} is (a parent|not marked parent)"),
    (r"non-existing queues \((?P<queue>\S+)\) which cannot be created", "{queue} cannot be made"),
    (r"non-existing queues \((?P<queue>\S+)\) and create is 'false'", "there is no queue {queue};"),
    (r"yaml: unmarshal errors:$", "unknown key "),
)


def ours(refused: str) -> re.Pattern[str]:
    """What our words for this refusal are like. Raises KeyError for words that no row knows."""
    for theirs, said in ROWS:
        if found := re.search(theirs, refused.strip()):
            for name, text in found.groupdict().items():
                said = said.replace(f"{{{name}}}", re.escape(text or ""))
            return re.compile(said)
    raise KeyError(refused)


def says_it_too(problems: tuple[Problem, ...], refused: str) -> bool:
    """Whether one of the problems is what YuniKorn refused the file for."""
    wanted = ours(refused)
    return any(wanted.search(problem.message) for problem in problems)
