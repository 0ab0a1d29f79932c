"""Priority classes, quotas and budgets in a queue file: what is read, what is refused and where, how it is shown."""

from __future__ import annotations

import pytest

from fairlead.config import ConfigurationError, check_text, load_text
from fairlead.config.show import as_tree, as_yaml
from fairlead.core.model.constraints import Requirement
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import BudgetSpec, PriorityClassSpec, QuotaSpec

PARTITIONS = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]\n"
ALL = (
    PARTITIONS
    + """
priorityclasses:
  - {name: high, value: 1000, globalDefault: true, description: for all}
  - {name: low, value: -10, preemptionPolicy: Never, limited: true, minRuntime: 10m}
quotas:
  - name: q
    queue: root.a
    resources: {vcore: 500m, memory: 4G}
    scopes: [{operator: In, values: [low, high]}, {scopeName: PriorityClass, operator: Exists}]
budgets:
  - {name: db, selector: {app: db}, minAvailable: 50%}
  - name: web
    selector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: NotIn, values: [x]}]}
    maxUnavailable: 1
"""
)


def test_everything_is_read() -> None:
    """With Kubernetes' keys; amounts as everywhere in the file."""
    spec = load_text(ALL)
    assert spec.priority_classes == (
        PriorityClassSpec(name="high", value=1000, global_default=True, description="for all"),
        PriorityClassSpec(name="low", value=-10, preemption_policy="Never", limited=True, min_runtime_ms=600_000),
    )
    scopes = (Requirement("PriorityClass", "In", ("low", "high")), Requirement("PriorityClass", "Exists"))
    amounts = Limits({"memory": 4_000_000_000, "vcore": 500})
    assert spec.quotas == (QuotaSpec(name="q", queue="root.a", resources=amounts, scopes=scopes),)
    assert spec.budgets == (
        BudgetSpec(name="db", selector=(Requirement("app", "In", ("db",)),), min_available="50%"),
        BudgetSpec(
            name="web",
            selector=(Requirement("app", "In", ("web",)), Requirement("tier", "NotIn", ("x",))),
            max_unavailable=1,
        ),
    )


def test_a_file_without_them_declares_none() -> None:
    """As every file of YuniKorn."""
    spec = load_text(PARTITIONS)
    assert (spec.priority_classes, spec.quotas, spec.budgets) == ((), (), ())
    assert not {"PriorityClasses", "Quotas", "Budgets"} & as_tree(spec).keys()


@pytest.mark.parametrize(
    ("line", "path", "words"),
    [
        ("priorityclasses: [{name: A, value: 1}]", "priorityclasses[0].name", "DNS subdomain"),
        ("priorityclasses: [{name: system-a, value: 1}]", "priorityclasses[0].name", "system-"),
        ("priorityclasses: [{name: a, value: 1000000001}]", "priorityclasses[0].value", "out of range"),
        ("priorityclasses: [{name: a, value: 1.5}]", "priorityclasses[0].value", "whole number"),
        ("priorityclasses: [{name: a, value: '1'}]", "priorityclasses[0].value", "without quotes"),
        ("priorityclasses: [{name: a}]", "priorityclasses[0]", "needs value"),
        ("priorityclasses: [{name: a, value: 1, preemptionPolicy: never}]", "[0].preemptionPolicy", "Never"),
        ("priorityclasses: [{name: a, value: 1, minRuntime: soon}]", "[0].minRuntime", "a positive duration"),
        ("priorityclasses: [{name: a, value: 1, minRuntime: 90}]", "[0].minRuntime", "with units"),
        ("priorityclasses: [{name: a, value: 1, globaldefault: true}]", "[0].globaldefault", "did you mean"),
        ("priorityclasses: [{name: a, value: 1}, {name: a, value: 2}]", "priorityclasses[1].name", "another one"),
        (
            "priorityclasses: [{name: a, value: 1, globalDefault: true}, {name: b, value: 1, globalDefault: true}]",
            "priorityclasses[1].globalDefault",
            "a second global default (the first: a)",
        ),
        ("quotas: [{name: q, queue: a, resources: {vcore: 1}}]", "quotas[0].queue", "whole path"),
        ("quotas: [{name: q, queue: root.a}]", "quotas[0].resources", "limits nothing"),
        ("quotas: [{name: q, queue: root.a, resources: {vcore: x}}]", "quotas[0].resources.vcore", "invalid quantity"),
        ("quotas: [{name: q, queue: root.a, scopes: [{operator: Is}]}]", "quotas[0].scopes[0]", "no operator"),
        ("quotas: [{name: q, queue: root.a, scopes: [{operator: In}]}]", "quotas[0].scopes[0]", "needs the names"),
        ("budgets: [{name: b, selector: {a: b}}]", "budgets[0]", "minimum"),
        ("budgets: [{name: b, minAvailable: 101%}]", "budgets[0]", "0% to 100%"),
        ("budgets: [{name: b, minAvailable: 1, maxUnavailable: 1}]", "budgets[0]", "not both"),
        ("priorityclasses: {a: 1}", "priorityclasses", "list of priority classes"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(line: str, path: str, words: str) -> None:
    """Line, path, and what to do."""
    with pytest.raises(ConfigurationError) as caught:
        load_text(PARTITIONS + line)
    [problem] = caught.value.errors
    assert problem.line == 2
    assert problem.path.endswith(path)
    assert words in problem.message


def test_all_mistakes_are_found_at_once() -> None:
    """In the order of the text."""
    text = PARTITIONS + "quotas: [{name: Q, queue: b}]\npriorityclasses: [{name: b_, value: 1}, {value: 3}]\n"
    assert [p.path for p in check_text(text)] == ["quotas[0].name", "priorityclasses[0].name", "priorityclasses[1]"]


def test_what_points_nowhere_is_warned_about() -> None:
    """A queue may be made later, a class by an order: the file loads."""
    text = PARTITIONS + "quotas: [{name: q, queue: root.b, scopes: [{operator: In, values: [hi]}]}]\n"
    assert load_text(text).quotas
    assert [(p.severity, p.path) for p in check_text(text)] == [
        ("warning", "quotas[0].queue"),
        ("warning", "quotas[0].scopes[0].values"),
    ]


def test_a_quota_of_what_nothing_asks_for_is_warned_about() -> None:
    """Cores are named vcore in a queue file: a quota of `cpu` would limit nothing."""
    text = PARTITIONS + "quotas: [{name: q, queue: root.a, resources: {cpu: 4, memory: 1G}}]\n"
    (said,) = check_text(text)
    assert (said.severity, said.path) == ("warning", "quotas[0].resources.cpu")
    assert said.message.endswith("did you mean vcore?")
    weights = PARTITIONS.replace("name: default,", "name: default, nodesortpolicy: {resourceweights: {cpu: 2}},")
    assert [p.path for p in check_text(weights)] == ["partitions[0].nodesortpolicy.resourceweights.cpu"]


def test_what_is_shown_can_be_loaded_again() -> None:
    """And says the same; quantities stand as they were written."""
    spec = load_text(ALL)
    assert as_tree(spec)["Quotas"][0]["resources"] == {"memory": "4G", "vcore": "500m"}
    shown = as_yaml(spec)
    again = load_text(shown[: shown.index("checksum:")])
    assert (again.priority_classes, again.quotas, again.budgets) == (spec.priority_classes, spec.quotas, spec.budgets)
