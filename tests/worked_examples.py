"""The examples in the documentation, read from the pages and run.

A page under `docs/queues` has queue files (```` ```yaml ````, with a name behind it where another block speaks of it)
and examples (```` ```example NAME ````). An example uses the queue file above it, or the one it names (`queues=NAME`).
Its lines are steps; those that begin with `=>` say what must be so at that point. They are run as the simulator's
scenarios are: what the page says is what happens.

Steps:

    node ID AMOUNTS            node ID drained AMOUNTS    node ID resize AMOUNTS    node ID drain|undrain|remove
    app ID queue=PATH user=U groups=G,H tag:KEY=VALUE gang:RESOURCE=QUANTITY style=Hard timeout=60s
    ask APP/KEY AMOUNTS times=N priority=P on=NODE required=NODE group=G placeholder opted-out originator meek
    end APP/KEY                end APP                    withdraw APP              sleep 10s
    class NAME value=N never default limited               quota NAME queue=PATH AMOUNTS class=A,B not=A,B any none
    budget NAME label:NAME=VALUE least=N most=N            class|quota|budget NAME removed
    reserve APP/KEY on|off     priority APP/KEY N         finish APP/KEY exit=N     interrupt APP/KEY
    confirm manual|auto        gone APP/KEY               node ID label attr:NAME=VALUE taint:NAME=VALUE
    config NAME                run                        run N                     settle

Beyond YuniKorn an ask may have class=NAME label:NAME=VALUE grace=TIME limit=TIME retry=N backoff=TIME never-on=N idle,
only:NAME=VALUE (the node's attributes), tolerate:NAME=VALUE, near:NAME=VALUE and apart:NAME=VALUE (other work's labels;
within=ATTRIBUTE says what counts as one place). A node may have attr:NAME=VALUE and taint:NAME=VALUE.

An ask's key is written with its application before it, so that no two are equal. `run` makes scheduling runs until one
starts nothing (at most N of them); `settle` makes twenty, and what is told to stop has stopped before the next. `meek`
asks make nobody stop.

What must be so:

    => starts APP/KEY@NODE ...     this and nothing else since the last such line, in this order; `nothing`; `3 of APP`
    => stops APP/KEY ...           likewise, in any order: what was told to stop or was ended
    => running APP=N ...           how many allocations each has now
    => waits APP/KEY CODE [WORD]   the reason's code, and a word that its sentence has
    => accepts APP in PATH         => rejects APP TEXT       => app APP STATE
    => queue PATH NAME=VALUE ...   => queue PATH gone        => refused TEXT
    => nominated APP/KEY@NODE ...  all for which space is held; `nothing`
    => evicts APP/KEY for APP/KEY  => evicts APP/KEY for nobody         the last eviction of the one was for the other;
                                   rule=NAME node=ID violates=BUDGET,...|nothing  and what else was recorded of it
    => refuses APP/KEY TEXT        the ask was not taken in             => declines NAME TEXT   nor the class or quota
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from invariants.books import check_books
from plain_scenarios import as_scenario

from fairlead.core.model.properties import parse_duration_ms
from fairlead.core.model.quantities import parse_quantity
from fairlead.core.model.specs import PRIORITY_MIN, TAG_REQUIRED_NODE
from fairlead.sim.outcome import aftermath, final_state
from fairlead.sim.scenario import ConfigurationRefused, Course

PAGES = Path(__file__).resolve().parents[1] / "docs" / "queues"
RUNS, SETTLING_RUNS = 200, 20
_BLOCK = re.compile(
    r"^```(yaml|example)(?: +([^\s=]+))?(?: +queues=(\S+))?[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL
)
Plain = dict[str, Any]


class PageError(ValueError):
    """A page that cannot be read; the text says where."""


@dataclass(frozen=True)
class QueueFile:
    """A queue file of a page; a name where other blocks speak of it."""

    page: str
    line: int
    name: str
    text: str


@dataclass(frozen=True)
class Line:
    """One line of an example: a step, or (`expected`) what must be so."""

    number: int
    expected: bool
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(("=>", *self.words) if self.expected else self.words)


@dataclass(frozen=True)
class Example:
    """One example of a page."""

    page: str
    name: str
    config: str
    configs: Mapping[str, str]
    lines: tuple[Line, ...]

    def steps(self) -> list[Plain]:
        """Its steps as those of a scenario."""
        return [step_of(line, self.configs) for line in self.lines if not line.expected]

    def scenario(self) -> Plain:
        """The example as a scenario without an expectation."""
        return {"name": self.name, "category": "documented", "config": self.config, "steps": self.steps()}


# --- reading a page ---


def read_page(path: Path) -> tuple[list[QueueFile], list[Example]]:
    """The queue files and the examples of one page, in their order."""
    return read_text(path.read_text(encoding="utf-8"), path.name)


def read_text(text: str, page: str) -> tuple[list[QueueFile], list[Example]]:
    """The same from a text."""
    files: list[QueueFile] = []
    found: list[tuple[str, str, QueueFile, int, str]] = []
    for block in _BLOCK.finditer(text):
        kind, name, wanted, body = block.groups(default="")
        at = text.count("\n", 0, block.start(4)) + 1
        if kind == "yaml":
            files.append(QueueFile(page, at, name, body))
        elif not files or not name:
            raise PageError(f"{page}:{at}: an example has a name, and a queue file above it")
        else:
            found.append((name, wanted, files[-1], at, body))
    configs = {f.name: f.text for f in files if f.name}
    examples = []
    for name, wanted, above, at, body in found:
        if wanted and wanted not in configs:
            raise PageError(f"{page}:{at}: there is no queue file {wanted} on this page")
        config = configs[wanted] if wanted else above.text
        examples.append(Example(page, name, config, configs, tuple(lines_of(body, at))))
    return files, examples


def lines_of(body: str, first: int) -> Iterator[Line]:
    """The lines that say something; ` # ` begins a remark."""
    for number, line in enumerate(body.splitlines(), first):
        words = tuple(re.split(r"(?:^|\s)#(?:\s|$)", line, maxsplit=1)[0].split())
        if words:
            expected = words[0] == "=>"
            yield Line(number, expected, words[1:] if expected else words)


def pages() -> list[Path]:
    """Every page with examples, by name."""
    return sorted(PAGES.glob("*.md"))


# --- steps ---


def split_pairs(words: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """`name=value` words, and the others."""
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    return pairs, [word for word in words if "=" not in word]


def amounts(pairs: Mapping[str, str]) -> dict[str, int]:
    return {name: parse_quantity(name, text) for name, text in pairs.items()}


def prefixed(pairs: dict[str, str], prefix: str) -> dict[str, str]:
    """Take out the pairs whose names begin so."""
    return {name.removeprefix(prefix): pairs.pop(name) for name in list(pairs) if name.startswith(prefix)}


def millis(text: str) -> int:
    found = parse_duration_ms(text)
    if found is None:
        raise ValueError(f"{text} is no duration")
    return found


def _node(words: tuple[str, ...], configs: Mapping[str, str]) -> Plain:
    pairs, [name, *action] = split_pairs(words)
    attributes, taints = prefixed(pairs, "attr:"), prefixed(pairs, "taint:")
    step: Plain = {"op": "node", "id": name} | ({"resources": amounts(pairs)} if pairs else {})
    step |= {"attributes": attributes} if attributes else {}
    step |= {"taints": [{"key": key, "value": value} for key, value in taints.items()]} if taints else {}
    known = {"drained": "create-drain", "resize": "update"}
    known |= {word: word for word in ("drain", "undrain", "remove", "label")}
    return step | ({"action": known[action[0]]} if action else {})


def _app(words: tuple[str, ...], configs: Mapping[str, str]) -> Plain:
    pairs, [name] = split_pairs(words)
    step: Plain = {"op": "app", "id": name}
    if tags := prefixed(pairs, "tag:"):
        step["tags"] = tags
    if gang := prefixed(pairs, "gang:"):
        step["placeholderAsk"] = amounts(gang)
    for key, text in pairs.items():
        match key:
            case "queue" | "user":
                step[key] = text
            case "groups":
                step["groups"] = text.split(",")
            case "style":
                step["gangStyle"] = text
            case "timeout":
                step["millis"] = millis(text)
            case _:
                raise ValueError(f"an application has no {key}")
    return step


_ASK_TEXTS = {"on": "node", "group": "taskGroup", "class": "priorityClass"}
_ASK_TIMES = {"grace": "graceMillis", "limit": "timeLimitMillis"}
_ASK_NUMBERS = {"times": "count", "priority": "priority"}
_ASK_FLAGS: dict[str, Plain] = {
    "placeholder": {"placeholder": True},
    "opted-out": {"noPreemptSelf": True},
    "originator": {"originator": True},
    "meek": {"preemptOther": False},
    "idle": {"idle": True},
}


def _ask(words: tuple[str, ...], configs: Mapping[str, str]) -> Plain:
    pairs, [name, *flags] = split_pairs(words)
    app, _ = name.split("/")
    step: Plain = {"op": "ask", "app": app, "key": name}
    for word in list(pairs):
        if word in _ASK_TEXTS:
            step[_ASK_TEXTS[word]] = pairs.pop(word)
        elif word in _ASK_NUMBERS:
            step[_ASK_NUMBERS[word]] = int(pairs.pop(word))
        elif word in _ASK_TIMES:
            step[_ASK_TIMES[word]] = millis(pairs.pop(word))
        elif word == "required":
            step["tags"] = {TAG_REQUIRED_NODE: pairs.pop(word)}
    step |= _where(pairs) | _retry(pairs)
    for flag in flags:
        step |= _ASK_FLAGS[flag]
    return step | {"resources": amounts(pairs)}


def _where(pairs: dict[str, str]) -> Plain:
    """Labels, and where an ask may run."""
    within = {"topologyKey": pairs.pop("within")} if "within" in pairs else {}
    near, apart = prefixed(pairs, "near:"), prefixed(pairs, "apart:")
    said = {
        "labels": prefixed(pairs, "label:"),
        "nodeSelector": prefixed(pairs, "only:"),
        "tolerations": [{"key": key, "value": value} for key, value in prefixed(pairs, "tolerate:").items()],
        "affinity": {"labels": near} | within if near else {},
        "antiAffinity": {"labels": apart} | within if apart else {},
    }
    return {name: value for name, value in said.items() if value}


def _retry(pairs: dict[str, str]) -> Plain:
    if "retry" not in pairs:
        return {}
    retry: Plain = {"limit": int(pairs.pop("retry"))}
    if "backoff" in pairs:
        retry["backoffMillis"] = millis(pairs.pop("backoff"))
    if "never-on" in pairs:
        retry["neverOn"] = [int(code) for code in pairs.pop("never-on").split(",")]
    return {"retry": retry}


def _class(words: tuple[str, ...], configs: Mapping[str, str]) -> Plain:
    pairs, [name, *flags] = split_pairs(words)
    known: dict[str, Plain] = {
        "never": {"preemptionPolicy": "Never"},
        "default": {"globalDefault": True},
        "limited": {"limited": True},
        "removed": {"action": "remove"},
    }
    step: Plain = {"op": "priority-class", "name": name}
    for flag in flags:
        step |= known[flag]
    if "value" in pairs:
        step["value"] = int(pairs.pop("value"))
    if pairs:
        raise ValueError(f"a class has no {', '.join(pairs)}")
    return step


def _quota(words: tuple[str, ...], configs: Mapping[str, str]) -> Plain:
    pairs, [name, *flags] = split_pairs(words)
    step: Plain = {"op": "quota", "name": name}
    if flags == ["removed"]:
        return step | {"action": "remove"}
    scopes: list[Plain] = [{"operator": {"any": "Exists", "none": "DoesNotExist"}[flag]} for flag in flags]
    for word, operator in (("class", "In"), ("not", "NotIn")):
        if word in pairs:
            scopes.append({"operator": operator, "values": pairs.pop(word).split(",")})
    return step | {"queue": pairs.pop("queue"), "resources": amounts(pairs), "scopes": scopes}


def _budget(words: tuple[str, ...], configs: Mapping[str, str]) -> Plain:
    pairs, [name, *flags] = split_pairs(words)
    step: Plain = {"op": "budget", "name": name}
    if flags == ["removed"]:
        return step | {"action": "remove"}
    step["selector"] = prefixed(pairs, "label:")
    for word, text in pairs.items():
        bound = {"least": "minAvailable", "most": "maxUnavailable"}[word]
        step[bound] = int(text) if text.isdigit() else text
    return step


def _finish(words: tuple[str, ...], configs: Mapping[str, str]) -> Plain:
    pairs, [name] = split_pairs(words)
    return {"op": "finish", "key": name} | ({"exitCode": int(pairs["exit"])} if pairs else {})


def _end(words: tuple[str, ...], configs: Mapping[str, str]) -> Plain:
    app, slash, _ = words[0].partition("/")
    return {"op": "release", "app": app} | ({"key": words[0]} if slash else {})


def _run(words: tuple[str, ...], configs: Mapping[str, str]) -> Plain:
    return {"op": "schedule", "steps": int(words[0]) if words else RUNS}


_STEPS: dict[str, Callable[[tuple[str, ...], Mapping[str, str]], Plain]] = {
    "node": _node,
    "app": _app,
    "ask": _ask,
    "end": _end,
    "withdraw": lambda words, configs: {"op": "remove-app", "id": words[0]},
    "class": _class,
    "quota": _quota,
    "budget": _budget,
    "finish": _finish,
    "interrupt": lambda words, configs: {"op": "interrupt", "key": words[0]},
    "gone": lambda words, configs: {"op": "gone", "key": words[0]},
    "reserve": lambda words, configs: {"op": "reserve", "key": words[0], "on": {"on": True, "off": False}[words[1]]},
    "priority": lambda words, configs: {"op": "set-priority", "key": words[0], "priority": int(words[1])},
    "confirm": lambda words, configs: {"op": "confirm", "mode": words[0]},
    "sleep": lambda words, configs: {"op": "sleep", "millis": millis(words[0])},
    "config": lambda words, configs: {"op": "config", "config": configs[words[0]]},
    "run": _run,
    "settle": lambda words, configs: {"op": "schedule", "steps": SETTLING_RUNS, "action": "settle"},
}


def step_of(line: Line, configs: Mapping[str, str]) -> Plain:
    """The step that a line stands for; raises `PageError` when it makes no sense."""
    try:
        return _STEPS[line.words[0]](line.words[1:], configs)
    except (KeyError, ValueError) as e:
        raise PageError(f"line {line.number}: {line}: {e!r}") from e


# --- what must be so ---


class Performance:
    """An example under way: what has been told, and the scheduler behind it."""

    def __init__(self, example: Example) -> None:
        self.example = example
        self.started = self.stopped = 0
        self.refusal = ""
        """Why a queue file was refused, until a line has said that it must be, and another step follows."""
        self.expected = False
        self._course: Course | None = None

    @property
    def course(self) -> Course:
        assert self._course is not None, "there is no scheduler, because the queue file was refused"
        return self._course

    def go(self) -> None:
        """Every line in turn; raises `AssertionError` with the page and the line of what is not so."""
        try:
            self._course = Course(self.example.config)
        except ConfigurationRefused as refusal:
            self.refusal = str(refusal)
        for line in self.example.lines:
            place = f"{self.example.page}:{line.number}: {line}"
            if line.expected:
                self.expect(line, place)
            else:
                self.no_surprise(place)
                self.do(line)
        self.no_surprise(self.example.page)

    def no_surprise(self, place: str) -> None:
        """A refusal that no line speaks of is a failure."""
        assert not self.refusal or self.expected, f"{place}: the queue file was refused: {self.refusal}"
        self.refusal, self.expected = "", False

    def do(self, line: Line) -> None:
        """One step; the books must be whole after it."""
        step = as_scenario({"config": "", "steps": [step_of(line, self.example.configs)]}).steps[0]
        try:
            self.course.advance(step)
        except ConfigurationRefused as refusal:
            self.refusal = str(refusal)
        check_books(self.course.scheduler)

    def expect(self, line: Line, place: str) -> None:
        """Check one line."""
        kind, *words = line.words
        if kind == "refused":
            assert self.refusal, f"{place}: it was accepted"
            assert " ".join(words) in self.refusal, f"{place}: the refusal says: {self.refusal}"
            self.expected = True
            return
        want, got = _EXPECTED[kind](self, words)
        assert want == got, f"{place}: it is {got!r}"

    # each: what the line says, and what is

    def starts(self, words: list[str]) -> tuple[object, object]:
        rows = self.course.record.allocated[self.started :]
        self.started += len(rows)
        return told(words, [(row["app"], row["key"], row["node"]) for row in rows])

    def stops(self, words: list[str]) -> tuple[object, object]:
        rows = self.course.record.released[self.stopped :]
        self.stopped += len(rows)
        want, got = told(words, [(row["app"], row["key"], "") for row in rows])
        return (sorted(want), sorted(got)) if isinstance(want, list) and isinstance(got, list) else (want, got)

    def running(self, words: list[str]) -> tuple[object, object]:
        pairs, _ = split_pairs(tuple(words))
        rows = final_state(self.course.scheduler)["apps"]
        return (
            {app: int(count) for app, count in pairs.items()},
            {app: len(rows[app]["allocations"]) if app in rows else 0 for app in pairs},
        )

    def waits(self, words: list[str]) -> tuple[object, object]:
        reason = self.course.scheduler.why(words[0].split("/")[0], words[0])
        if reason is None:
            return words[1:], "no waiting ask"
        text = f"{reason.code}: {reason.sentence()}"
        return words[1:], words[1:] if reason.code == words[1] and " ".join(words[2:]) in text else text

    def accepts(self, words: list[str]) -> tuple[object, object]:
        app = self.course.scheduler.cluster.partitions["default"].applications.get(words[0])
        return words[2], app.queue.path if app else self.course.record.apps_rejected.get(words[0], "unknown")

    def rejects(self, words: list[str]) -> tuple[object, object]:
        sentence = self.course.record.apps_rejected.get(words[0])
        text = " ".join(words[1:])
        return text, text if sentence is not None and text in sentence else sentence

    def nominated(self, words: list[str]) -> tuple[object, object]:
        held = [f"{key}@{node}" for key, node in aftermath(self.course.scheduler)["nominated"].items()]
        return [] if words == ["nothing"] else sorted(words), held

    def evicts(self, words: list[str]) -> tuple[object, object]:
        row = {row["key"]: row for row in self.course.record.evictions}.get(words[0])
        if row is None:
            return words[2], "not evicted"
        want, _ = split_pairs(tuple(words))
        got = {"rule": row["rule"], "node": row["node"], "violates": ",".join(row.get("violates", ())) or "nothing"}
        return (words[2], want), (row["for"] or "nobody", {name: got[name] for name in want})

    def refuses(self, words: list[str]) -> tuple[object, object]:
        return said_of(self.course.record.asks_rejected, words)

    def declines(self, words: list[str]) -> tuple[object, object]:
        return said_of(self.course.record.declarations_rejected, words)

    def app(self, words: list[str]) -> tuple[object, object]:
        row = final_state(self.course.scheduler)["apps"].get(words[0])
        return words[1], row["state"] if row else "gone"

    def queue(self, words: list[str]) -> tuple[object, object]:
        row = final_state(self.course.scheduler)["queues"].get(words[0])
        if words[1:] == ["gone"] or row is None:
            return words[1:], ["gone"] if row is None else "there"
        pairs, _ = split_pairs(tuple(words[1:]))
        want = {name: queue_value(name, text) for name, text in pairs.items()}
        return want, {name: queue_figure(row, name) for name in pairs}


_EXPECTED: dict[str, Callable[[Performance, list[str]], tuple[object, object]]] = {
    kind: getattr(Performance, kind)
    for kind in (
        *("starts", "stops", "running", "waits", "accepts", "rejects", "app", "queue"),
        *("nominated", "evicts", "refuses", "declines"),
    )
}


def said_of(reasons: Mapping[str, str], words: list[str]) -> tuple[object, object]:
    """Whether the reason for the first word has the others in it."""
    sentence, text = reasons.get(words[0]), " ".join(words[1:])
    return text, text if sentence is not None and text in sentence else sentence or "not refused"


def told(words: list[str], rows: list[tuple[str, str, str]]) -> tuple[object, object]:
    """What a line says of rows `(app, key, node)`, and what they are in the same form: names, or how many of each."""
    if words == ["nothing"]:
        return [], [key for _, key, _ in rows]
    if "of" in words:
        counts = re.findall(r"(\d+) of ([^\s,]+)", " ".join(words))
        return Counter({app: int(n) for n, app in counts}), Counter(app for app, _, _ in rows)
    with_node = any("@" in word for word in words)
    return words, [f"{key}@{node}" if with_node else key for _, key, node in rows]


_FIGURES = {
    "used": "allocatedResource",
    "waiting": "pendingResource",
    "max": "maxResource",
    "guaranteed": "guaranteedResource",
    "left": "headroom",
}
_WORDS = {
    "state": "status",
    "dynamic": "isManaged",
    "leaf": "isLeaf",
    "apps": "runningApps",
    "priority": "currentPriority",
}


def queue_value(name: str, text: str) -> object:
    """What the text of `used.vcore=2`, `priority=none`, `state=Draining` and the like means."""
    if "." in name:
        return None if text == "none" else parse_quantity(name.split(".", 1)[1], text)
    if name in ("dynamic", "leaf"):
        return {"yes": True, "no": False}[text]
    if name in ("apps", "priority"):
        return PRIORITY_MIN if text == "none" else int(text)
    return text


def queue_figure(row: Plain, name: str) -> object:
    """The same from a queue's row; of the amounts used and waiting, what is absent is 0."""
    figure, _, resource = name.partition(".")
    if resource:
        absent = 0 if figure in ("used", "waiting") else None
        return row.get(_FIGURES[figure], {}).get(resource, absent)
    value = row.get(_WORDS[name], 0)
    return not value if name == "dynamic" else value


def main() -> None:
    """Write every example as a scenario, a line of JSON each."""
    for path in pages():
        for example in read_page(path)[1]:
            print(json.dumps(example.scenario(), separators=(",", ":")))


if __name__ == "__main__":
    main()
