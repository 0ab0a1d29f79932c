"""Single books without a scheduler around them: queues, applications, asks and nodes, made with little said."""

from __future__ import annotations

from itertools import count
from typing import Any

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec

_numbers = count(1)


def tree(*paths: str) -> dict[str, Queue]:
    """Queues by path, the root among them; the last of each path is a leaf."""
    root = Queue("root", None, next(_numbers), leaf=False, managed=True)
    made = {"root": root}
    for path in paths:
        above = root
        names = path.split(".")[1:]
        for at, name in enumerate(names, 1):
            full = f"{above.path}.{name}"
            if full not in made:
                made[full] = Queue(name, above, next(_numbers), leaf=at == len(names), managed=True)
            above = made[full]
    return made


def application(leaf: Queue, name: str = "app", now_ms: int = 0, **spec: Any) -> Application:
    """In this leaf, and listed there."""
    app = Application(ApplicationSpec(id=name, queue=leaf.path, **spec), leaf, next(_numbers), now_ms)
    leaf.applications[name] = app
    return app


def ask(app: Application, key: str, amounts: dict[str, int] | None = None, now_ms: int = 0, **spec: Any) -> Ask:
    """Of one core where nothing is said; in no line yet."""
    resources = Resources(amounts if amounts is not None else {"vcore": 1})
    made = Ask(app, AskSpec(application=app.id, key=key, resources=resources, **spec), next(_numbers), now_ms)
    app.asks[key] = made
    return made


def node(name: str, **amounts: int) -> Node:
    """Empty, in no table."""
    made = Node(NodeSpec(id=name, capacity=Resources(amounts)), next(_numbers))
    made.set_capacity(Resources(amounts))
    return made
