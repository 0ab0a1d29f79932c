"""`fairlead label`: what a node says about itself.

Decides how words become attributes and taints, and that what is not named stays as it is. Never decides what runs
there. Invariant: a word that makes no sense changes nothing.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from fairlead.cli import completion, render
from fairlead.cli.app import Status, client_command
from fairlead.cli.client import Client
from fairlead.cli.cluster import NodeArgument, marks
from fairlead.cli.failures import Failure, wrong_usage

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_EXAMPLES = """
fairlead label gpu-1 disk=ssd rack=7
fairlead label gpu-1 rack-
fairlead label gpu-1 --taint broken:NoExecute
fairlead label gpu-1 --untaint broken
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    client_command(app, "label", examples=_EXAMPLES)(label)


def label(
    client: Client,
    node: NodeArgument,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE|NAME-", help="An attribute to set, or to take away.")
    ] = None,
    taint: Annotated[
        list[str] | None,
        typer.Option("--taint", metavar="KEY[=VALUE]:EFFECT", help=f"Keep work away; EFFECT is {', '.join(EFFECTS)}."),
    ] = None,
    untaint: Annotated[
        list[str] | None, typer.Option("--untaint", metavar="KEY", help="Take all taints with this key away.")
    ] = None,
) -> Status:
    """Give a node attributes and taints.

    Attributes are what --node-selector asks for; taints keep away work that does not tolerate them, and NoExecute also
    stops what runs. What is not named stays as it is.
    """
    if not (words or taint or untaint):
        raise wrong_usage("label: say what to change, such as disk=ssd, disk-, or --taint broken:NoSchedule")
    added = [_taint(text) for text in taint or ()]
    known = next((n for n in client.get("/nodes")["nodes"] if n["id"] == node), None)
    if known is None:
        raise Failure(f"there is no node {node}; `fairlead nodes` lists them", 4)
    attributes = dict(known["attributes"])
    missing = [key for key in untaint or () if key not in {t["key"] for t in known["taints"]}]
    missing += [word[:-1] for word in words or () if "=" not in word and word[:-1] not in attributes]
    for word in words or ():
        _apply(attributes, word)
    away = {(t["key"], t["effect"]) for t in added}
    kept = [t for t in known["taints"] if t["key"] not in (untaint or ()) and (t["key"], t["effect"]) not in away]
    body = {"attributes": attributes, "taints": kept + added}
    now = client.put(f"/nodes/{completion.quoted(node)}/labels", body)
    for name in missing:
        print(render.plain(f"note: {node} had no {name}"), file=sys.stderr)
    own, taints = marks(now)
    print(render.plain(f"{node}: {own or 'no attributes'}; {f'taints {taints}' if taints else 'no taints'}"))
    return None


def _apply(attributes: dict[str, str], word: str) -> None:
    name, equals, value = word.partition("=")
    if equals and name:
        attributes[name] = value
    elif not equals and word.endswith("-") and len(word) > 1:
        attributes.pop(word[:-1], None)
    else:
        raise wrong_usage(f"label: {word!r} is neither NAME=VALUE nor NAME-")


def _taint(text: str) -> dict[str, Any]:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    if not key or effect not in EFFECTS:
        raise wrong_usage(f"--taint: {text!r} is not KEY[=VALUE]:EFFECT with one of {', '.join(EFFECTS)}")
    return {"key": key, "value": value, "effect": effect}
