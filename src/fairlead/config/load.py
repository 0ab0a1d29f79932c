"""A queue file to a validated `ClusterSpec`, or to the list of everything that is wrong with it.

Decides whether a file is used, and what those who act on one ask beyond that: the partition of their nodes, and nothing
that would be ignored. It agrees with Apache YuniKorn on what is refused, save what is written down here; all problems
are found at once, and nothing is read and then silently ignored.

Where it differs on purpose:
* text without any partition is refused (YuniKorn starts and rejects everything); the empty string is the built-in file;
* rules that can never be built (an unknown name, `fixed` or `tag` without a value) are refused at once; YuniKorn starts
  with them, rejects every application, and refuses them on reload. `keep_broken_rules` behaves as it does at its start;
* text after the end of the document that is no document is refused: it is a wrong indent more often than not;
* negative fractions as counts, infinite weights, tags other than YAML's own types and empty keys are refused;
* a bad quantity in a child template of a leaf is refused, although nobody would use it;
* expressions in filters are Python's, without what Go's do not have.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

from fairlead.config import check_queues, check_rules, declare
from fairlead.config.admission import check_admission
from fairlead.config.decode import ERROR, WARNING, ConfigurationError, Findings, Problem, in_text_order
from fairlead.config.tree import PlacedQueue, places_of, root_of
from fairlead.config.yamltree import Node, YamlError, compose
from fairlead.core.model.resources import UNLIMITED
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec, PartitionSpec, QueueSpec

MAX_BYTES = 4 * 1024 * 1024

BUILT_IN = """\
partitions:
  - name: default
    placementrules:
      - name: tag
        value: namespace
        create: true
    queues:
      - name: root
        submitacl: "*"
"""
"""What the empty string means: one root open to all, a queue for each namespace."""

_QUEUES_OF_OTHERS = {
    "kueue.x-k8s.io/": "of a ClusterQueue write nominalQuota as resources.guaranteed of a queue, and that with "
    "borrowingLimit as resources.max; a Cohort is a queue above it",
    "scheduling.volcano.sh/": "write capability as resources.max of a queue, and deserved as resources.guaranteed",
    "fairlead.io/": "kubectl apply takes it",
}
"""What begins the version of an object of others, and what to do with it."""
_CHECKSUM = re.compile(r"checksum: *[0-9a-fA-F]{64}")


def load_text(text: str, source: str = "<text>", *, keep_broken_rules: bool = False) -> ClusterSpec:
    """The validated configuration. Raises `ConfigurationError` with all problems if there is an error among them.

    `source` names the text in messages. The empty string is the built-in default (`BUILT_IN`). With
    `keep_broken_rules` placement rules that cannot be built are kept with a warning, as YuniKorn does when it starts.
    TypeError for what is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.100}: a queue file is given as text (fairlead.config.load_file reads one)")
    spec, problems = _read(text or BUILT_IN, source, WARNING if keep_broken_rules else ERROR)
    if spec is None:
        raise ConfigurationError(problems)
    return spec


def load_file(path: str | Path, *, keep_broken_rules: bool = False) -> ClusterSpec:
    """`load_text` of a file in UTF-8. A file that cannot be read, or is empty, is a `ConfigurationError` too."""
    return load_text(file_text(path) or "\n", str(path), keep_broken_rules=keep_broken_rules)


def default_text() -> str:
    """The queue file that comes with the package, for one machine that several people share."""
    return resources.files("fairlead.config").joinpath("default.yaml").read_text("utf-8")


def file_text(path: str | Path) -> str:
    """The text of a queue file. Raises `ConfigurationError` when it cannot be read, is too large or no UTF-8."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError([_whole(str(path), f"cannot be read: {error.strerror}")]) from error
    if len(raw) > MAX_BYTES:
        raise ConfigurationError([_whole(str(path), f"larger than {MAX_BYTES} bytes; split or shorten it")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        column = error.start - (raw[: error.start].rfind(b"\n") + 1) + 1
        raise ConfigurationError([_whole(str(path), "no valid UTF-8; save the file as UTF-8", line, column)]) from error


def check_text(text: str, source: str = "<text>") -> list[Problem]:
    """Every problem of a text, errors and warnings, sorted by place; empty when all is well."""
    return _read(text or BUILT_IN, source, ERROR)[1]


def checksum_of(text: str) -> str:
    """SHA-256 of the text without a `checksum: <64 hex digits>` in it, as upper-case hex."""
    return hashlib.sha256(_CHECKSUM.sub("", text).encode("utf-8", "surrogatepass")).hexdigest().upper()


def _whole(source: str, message: str, line: int = 1, column: int = 1) -> Problem:
    return Problem(source=source, line=line, column=column, path="", message=message)


def _read(text: str, source: str, broken: str) -> tuple[ClusterSpec | None, list[Problem]]:
    found = Findings(source)
    try:
        document = compose(text)
    except YamlError as error:
        return None, [_whole(source, error.message, error.line, error.column)]
    if document.second:
        line, column = document.second
        message = "only the first document of the text is read; remove what follows or put it into a file of its own"
        found.problems.append(replace(_whole(source, message, line, column), severity=WARNING))
    if document.root is None:
        return None, [
            *found.problems,
            _whole(source, "the text says nothing; a queue file needs at least one partition"),
        ]
    if (other := _of_another_kind(document.root)) is not None:
        message, line, column = other
        return None, [*found.problems, _whole(source, message, line, column)]
    declaration = declare.declared(found, document.root)
    partitions = _partitions(found, declaration, broken)
    check_admission(found, declaration.admission, partitions)
    for quota in declaration.admission.quotas:
        check_queues.warn_misnamed(found, f"{quota.path}.resources", dict(quota.spec.resources))
    checksum = checksum_of(text)
    if declaration.checksum and declaration.checksum.upper() != checksum:
        found.warn("checksum", f"does not match the text (it would be {checksum}); remove it, it is computed")
    problems = in_text_order(found.problems)
    if found.failed:
        return None, problems
    admission = declaration.admission
    spec = ClusterSpec(
        partitions=partitions,
        checksum=checksum,
        text=text,
        priority_classes=tuple(entry.spec for entry in admission.priorityclasses),
        quotas=tuple(entry.spec for entry in admission.quotas),
        budgets=tuple(entry.spec for entry in admission.budgets),
    )
    return spec, problems


def _of_another_kind(root: Node) -> tuple[str, int, int] | None:
    """What is said of a text that is something else, such as the ConfigMap that has the queue file in it, and where."""
    told = {key.text: value for key, value in root.pairs()} if root.kind == "mapping" else {}
    kind, helm = told.get("kind"), told.get("yunikornDefaults")
    if helm is not None:
        message = "values of a Helm chart, not a queue file; give the text under yunikornDefaults, queues.yaml"
        return message, helm.line, helm.column
    if kind is None or kind.kind != "text" or "partitions" in told:
        return None
    version = told["apiVersion"].text if "apiVersion" in told else ""
    whose = next((each for each in _QUEUES_OF_OTHERS if version.startswith(each)), "")
    advice = _QUEUES_OF_OTHERS.get(whose, "give the text under its data, queues.yaml")
    return f"a Kubernetes object ({kind.text[:60]}), not a queue file; {advice}", kind.line, kind.column


def _partitions(found: Findings, declaration: declare.Declaration, broken: str) -> tuple[PartitionSpec, ...]:
    if not declaration.partitions and not found.failed:
        found.add("partitions", "a queue file needs at least one partition: partitions: [{name: default, queues: ...}]")
    built: list[PartitionSpec] = []
    seen: dict[str, str] = {}
    for partition in declaration.partitions:
        name = partition.name
        if name.lower() in ("", DEFAULT_PARTITION):
            name = DEFAULT_PARTITION
        if name.lower() in seen:
            found.add(
                f"{partition.path}.name",
                f"a second partition named {name} (the first: {seen[name.lower()]}); rename or merge it",
            )
        seen.setdefault(name.lower(), partition.path)
        built.append(_partition(found, partition, name, broken))
    return tuple(built)


def _partition(found: Findings, declaration: declare.PartitionDeclaration, name: str, broken: str) -> PartitionSpec:
    root = root_of(declaration)
    if root is None:
        found.add(
            f"{declaration.path}.queues", f"partition {name} needs a list of queues, at least: queues: [{{name: root}}]"
        )
    else:
        _check_double_limits(found, declaration, root)
        _check_queues(found, root)
        for queue in root.walk():
            check_queues.warn_ignored(found, queue, declaration.preemption)
        check_rules.check_rules(found, declaration.rules, f"{declaration.path}.placementrules", root, broken)
    _check_switches(found, declaration)
    return PartitionSpec(
        name=name,
        root=root.spec if root else QueueSpec(name="root", parent=True),
        placement_rules=declaration.rules,
        node_sort=declaration.node_sort,
        preemption=declaration.preemption,
        user_group_resolver=declaration.resolver,
        state_aware=declaration.state_aware,
    )


def _check_double_limits(found: Findings, declaration: declare.PartitionDeclaration, root: PlacedQueue) -> None:
    if declaration.limits and root.spec.limits and declaration.limits != root.spec.limits:
        found.add(
            f"{declaration.path}.limits",
            "the partition and its root queue both have limits, and they differ; keep one of the two",
        )


def _check_queues(found: Findings, root: PlacedQueue) -> None:
    check_queues.check_root(found, root)
    for queue in root.walk():
        check_queues.check_acls(found, queue)
        check_queues.check_queue_limits(found, queue)
        check_queues.check_names(found, queue)
        check_queues.check_properties(found, queue)
        check_queues.check_amounts(found, queue)
    check_queues.check_resources(found, root, UNLIMITED)
    check_queues.check_max_applications(found, root)
    check_queues.check_job_defaults(found, root)
    check_queues.check_hierarchy(found, root)


def _check_switches(found: Findings, declaration: declare.PartitionDeclaration) -> None:
    """Node sorting, the rule of preemption, the resolver of groups."""
    sort = declaration.node_sort
    check_queues.warn_misnamed(found, f"{declaration.path}.nodesortpolicy.resourceweights", sort.weights)
    if sort.policy not in declare.NODE_SORTS:
        found.add(
            f"{declaration.path}.nodesortpolicy.type",
            f"'{sort.policy[:60]}' is no way to sort nodes; use fair (emptiest first) or binpacking (fullest first)",
        )
    for resource, weight in sort.weights.items():
        if weight < 0:
            found.add(
                f"{declaration.path}.nodesortpolicy.resourceweights.{resource}",
                f"the weight of {resource} is negative; use 0 or more",
            )
    rule = declaration.preemption.rule
    if rule not in declare.PREEMPTION_RULES:
        found.add(
            f"{declaration.path}.preemption.rule",
            f"'{rule[:60]}' is no rule of preemption; use one of {', '.join(declare.PREEMPTION_RULES)}"
            f"{found.did_you_mean(rule, declare.PREEMPTION_RULES)}",
        )
    if declaration.resolver not in declare.RESOLVERS:
        found.warn(
            f"{declaration.path}.usergroupresolver.type",
            f"'{declaration.resolver[:60]}' is no resolver; there will be none. Known: os, ldap, test",
        )


def errors_of(spec: ClusterSpec) -> list[Problem]:
    """What the checks of queues and placement rules refuse in a configuration that was not read from a text."""
    found, partitions = places_of(replace(spec, text=""))
    for partition in partitions:
        _check_queues(found, partition.root)
        rules = partition.spec.placement_rules
        check_rules.check_rules(found, rules, f"{partition.path}.placementrules", partition.root, ERROR)
    return [problem for problem in found.problems if problem.severity == ERROR]


# -- what those who act on a file ask beyond that -----------------------------------------------------------------


def problems_of(text: str, source: str = "<text>", *, elsewhere: str = ERROR) -> list[Problem]:
    """Everything that is wrong with a text for the service of a machine, odd in it, or would be ignored.

    `elsewhere`: how bad it is that the partition of the machine is missing; empty: not said.
    """
    return _for_a_machine(text, source, elsewhere)[1]


def checked(text: str, source: str = "<text>") -> tuple[ClusterSpec | None, list[Problem]]:
    """The configuration of a text for the service of a machine, None if it cannot be used, and what is wrong or odd."""
    spec, problems = _for_a_machine(text, source, ERROR)
    return None if any(problem.severity == ERROR for problem in problems) else spec, problems


def usable(text: str, source: str = "<text>") -> ClusterSpec:
    """The configuration of a text for the service of a machine. Raises `ConfigurationError`."""
    spec, problems = checked(text, source)
    if spec is None:
        raise ConfigurationError(problems)
    return spec


def _for_a_machine(text: str, source: str, elsewhere: str) -> tuple[ClusterSpec | None, list[Problem]]:
    if not text.strip():
        # Elsewhere the empty text is the built-in file; a truncated file must not have that effect.
        return None, [_whole(source, "the text is empty; a queue file needs at least one partition")]
    spec, found = _read(text, source, ERROR)
    if spec is None:
        return None, found
    missing = homeless(spec, source, severity=elsewhere) if elsewhere else []
    return spec, [*missing, *found, *_without_nodes(spec, source), *not_yet(spec, source, knows_groups=True)]


def homeless(spec: ClusterSpec, source: str = "<text>", *, severity: str = ERROR) -> list[Problem]:
    """The problem of a file without the partition of the machine or cluster; empty when it has it."""
    if any(partition.name == DEFAULT_PARTITION for partition in spec.partitions):
        return []
    found, partitions = places_of(spec, source)
    found.add(
        f"{partitions[0].path}.name" if partitions else "partitions",
        f"no partition is named {DEFAULT_PARTITION}, and a machine or cluster is in that one, so its service refuses "
        f"the file; rename one to {DEFAULT_PARTITION}, or add it",
        severity=severity,
    )
    return found.problems


def _without_nodes(spec: ClusterSpec, source: str) -> list[Problem]:
    """A warning for each partition beside the one that a machine or cluster is in."""
    found, partitions = places_of(spec, source)
    if any(partition.spec.name == DEFAULT_PARTITION for partition in partitions):
        for partition in partitions:
            name = partition.spec.name
            if name != DEFAULT_PARTITION:
                found.warn(
                    f"{partition.path}.name",
                    f"a machine or cluster is in partition {DEFAULT_PARTITION}, so {name[:60]} has no nodes and takes "
                    f"no work there; move its queues to {DEFAULT_PARTITION}",
                )
    return found.problems


def not_yet(spec: ClusterSpec, source: str = "<text>", *, knows_groups: bool = False) -> list[Problem]:
    """An error for every place of the configuration that would be ignored, sorted by place; empty when none is.

    `knows_groups`: for a place that takes the groups of its users from the system's group database, which is what
    `usergroupresolver: {type: os}` asks for.
    """
    found, partitions = places_of(spec, source)
    for partition in partitions:
        if partition.spec.user_group_resolver not in ("", "os" if knows_groups else ""):
            found.add(
                f"{partition.path}.usergroupresolver",
                "not yet: groups are not looked up; they come with the submission. Remove it",
            )
    return in_text_order(found.problems)
