from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.config import WARNING, ConfigurationError, Problem, check_text, load_file, load_text

BROKEN = """\
partitions:
  - name: default
    nodesortpolicy: {type: nonsense}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
            resources:
              max: {vcore: 1.5, memory: 10Gi}
          - name: A
            maxaplications: 3
"""


def problems_of(text: str) -> list[Problem]:
    with pytest.raises(ConfigurationError) as caught:
        load_text(text, "q.yaml")
    return list(caught.value.problems)


def test_all_problems_are_found_at_once_in_the_order_of_the_text() -> None:
    """Four mistakes of four kinds, sorted by line."""
    assert [(p.line, p.column, p.path, p.value) for p in problems_of(BROKEN)] == [
        (3, 28, "partitions[0].nodesortpolicy.type", "nonsense"),
        (10, 28, "partitions[0].queues[0].queues[0].resources.max.vcore", "1.5"),
        (11, 19, "partitions[0].queues[0].queues[1].name", "A"),
        (12, 13, "partitions[0].queues[0].queues[1].maxaplications", "maxaplications"),
    ]


def test_a_problem_reads_as_one_line_with_its_place() -> None:
    """File, line, column, path, and what to do."""
    assert str(problems_of(BROKEN)[3]).startswith(
        "q.yaml:12:13: partitions[0].queues[0].queues[1].maxaplications: unknown key maxaplications; did you mean "
        "maxapplications?"
    )


def test_what_counts_by_guarantee_alone_is_said_to_mean_nothing_by_rank() -> None:
    text = """
partitions:
  - name: default
    preemption: {{rule: {rule}}}
    queues:
      - name: root
        properties: {{application.sort.priority: Disabled}}
        queues: [{{name: a, properties: {{application.sort.priority: enabled}}}}]
"""
    assert not check_text(text.format(rule="guarantee"))
    for rule in ("priority", "both"):
        (problem,) = check_text(text.format(rule=rule))
        assert (problem.line, problem.severity) == (7, WARNING)
        assert "means something with preemption.rule guarantee only" in problem.message


def test_a_delay_of_preemption_is_said_to_mean_nothing_by_rank() -> None:
    text = """
partitions:
  - name: default
    preemption: {{rule: {rule}}}
    queues: [{{name: root, properties: {{preemption.delay: 10m}}}}]
"""
    assert not check_text(text.format(rule="guarantee"))
    for rule in ("priority", "both"):
        (problem,) = check_text(text.format(rule=rule))
        assert (problem.line, problem.severity) == (5, WARNING)
        assert "preemption.delay means something with preemption.rule guarantee only" in problem.message


def test_what_a_child_template_says_in_vain_is_warned_about_as_well() -> None:
    text = """
partitions:
  - name: default
    preemption: {rule: both}
    queues: [{name: root, childtemplate: {properties: {preemption.delay: 10m, application.sort.priority: disabled}}}]
"""
    assert [problem.path for problem in check_text(text)] == [
        'partitions[0].queues[0].childtemplate.properties["preemption.delay"]',
        'partitions[0].queues[0].childtemplate.properties["application.sort.priority"]',
    ]


@pytest.mark.parametrize("key", ["quota.preemption.delay", "preemption.quota.delay"])
def test_a_delay_of_lowered_maxima_is_said_to_mean_nothing_where_these_are_not_enforced(key: str) -> None:
    text = """
partitions:
  - name: default
    preemption: {{quotapreemptionenabled: {switch}}}
    queues: [{{name: root, queues: [{{name: a, properties: {{{key}: 10m}}}}]}}]
"""
    assert not check_text(text.format(switch="true", key=key))
    (problem,) = check_text(text.format(switch="false", key=key))
    assert (problem.line, problem.severity) == (5, WARNING)
    assert f"{key} means something with preemption.quotapreemptionenabled: true" in problem.message


def test_budgets_where_all_preemption_is_by_guarantee_are_said_to_mean_nothing() -> None:
    text = """
budgets: [{{name: db, selector: {{app: db}}, minAvailable: 1}}]
partitions:
  - name: default
    queues: [{{name: root}}]
  - name: other
    preemption: {{rule: {rule}}}
    queues: [{{name: root}}]
"""
    assert not check_text(text.format(rule="both"))
    (problem,) = check_text(text.format(rule="guarantee"))
    assert (problem.line, problem.severity) == (2, WARNING)
    assert "by guarantee looks at no budgets" in problem.message


def test_a_warning_says_so() -> None:
    """Its line has the word, and the file loads."""
    text = "partitions: [{queues: [{name: root, properties: {priority.offset: abc}}]}]"
    (problem,) = check_text(text, "q.yaml")
    assert problem.severity == WARNING
    assert str(problem).startswith('q.yaml:1:67: partitions[0].queues[0].properties["priority.offset"]: warning: ')
    assert load_text(text).partitions[0].root.properties == {"priority.offset": "abc"}


def test_a_child_template_of_a_leaf_is_warned_about() -> None:
    """Nothing is made below it: somebody forgot `parent: true`."""
    queue = "{name: a, childtemplate: {resources: {max: {vcore: 1}}}"
    text = f"partitions: [{{queues: [{{name: root, queues: [{queue}}}]}}]}}]"
    (problem,) = check_text(text)
    assert (problem.severity, problem.path) == (WARNING, "partitions[0].queues[0].queues[0].childtemplate")
    assert "parent: true" in problem.message
    assert not check_text(text.replace("name: a,", "name: a, parent: true,"))


def test_check_finds_what_load_raises() -> None:
    """The same list, without an exception."""
    assert check_text(BROKEN, "q.yaml") == problems_of(BROKEN)


def test_the_error_prints_at_most_fifty_problems_and_holds_all() -> None:
    """A file with many mistakes stays readable."""
    queues = "".join(f"\n      - name: 'bad {i}'" for i in range(80))
    problems = problems_of(f"partitions:\n  - queues:{queues}\n")
    assert len(problems) == 80
    lines = str(ConfigurationError(problems)).splitlines()
    assert len(lines) == 51
    assert lines[-1] == "... and 30 more"


def test_the_error_survives_pickling() -> None:
    """It may cross a process border."""
    error = ConfigurationError(problems_of(BROKEN))
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


def test_a_file_is_read_with_its_name_in_the_problems(tmp_path: Path) -> None:
    """load_file names the file as it was given."""
    path = tmp_path / "queues.yaml"
    path.write_text("\ufeffpartitions: 5\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="needs a list of partitions, not '5'") as caught:
        load_file(path)
    assert str(caught.value).startswith(f"{path}:1:13: partitions: ")


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    """One kind of exception for all that can be wrong with a file."""
    with pytest.raises(ConfigurationError, match=r"nothing\.yaml:1:1: cannot be read: No such file or directory"):
        load_file(tmp_path / "nothing.yaml")


def test_a_file_that_is_no_utf8_is_refused_with_the_place(tmp_path: Path) -> None:
    """The line and column of the first wrong byte."""
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"# one\n# caf\xe9\n")
    with pytest.raises(ConfigurationError, match=r"latin\.yaml:2:6: no valid UTF-8"):
        load_file(path)


JOB_BOUNDS = """\
partitions:
  - name: default
    queues:
      - name: root
        properties:
          job.time.max: 2h
          job.memory.default: lots
        queues:
          - name: a
            properties:
              job.time.default: 3h
              job.priority.max: "10"
          - name: b
            parent: true
            childtemplate:
              properties: {job.retry.max: "-1"}
          - name: c
            properties: {job.tmie.max: 3h, job.time.default: 1h}
"""


def test_bounds_on_jobs_that_mean_nothing_are_errors() -> None:
    """What cannot be read would be no bound at all, and a default above the maximum would refuse every job."""
    found = [(p.line, p.severity, p.message) for p in check_text(JOB_BOUNDS, "q.yaml")]
    assert [(line, severity) for line, severity, _ in found] == [
        (7, "error"),
        (11, "error"),
        (16, "error"),
        (18, "warning"),
    ]
    assert found[0][2] == "job.memory.default needs an amount of bytes above 0, such as 512Mi or 4Gi, not 'lots'"
    assert "in root.a the job.time.default, 3h, is above the job.time.max, 2h; lower the one" in found[1][2]
    assert "did you mean job.time.max?" in found[3][2]


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(lambda n: "    limits:\n" + "".join(f"    - {{users: [u{i}]}}\n" for i in range(n)), id="limits"),
        pytest.param(lambda n: "budgets:\n" + "".join(f"- {{name: B{i}}}\n" for i in range(n)), id="budgets"),
    ],
)
def test_twice_as_many_problems_take_no_more_than_twice_the_work(entries: Callable[[int], str]) -> None:
    """A service reads queue files, too: what it finds first is not gone through again for each that follows."""

    def work(count: int) -> int:
        calls = 0

        def counted(_frame: Any, event: str, _arg: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        text = "partitions:\n- name: default\n  queues:\n  - name: root\n" + entries(count)
        sys.setprofile(counted)
        try:
            found = check_text(text)
        finally:
            sys.setprofile(None)
        assert len(found) == count
        return calls

    assert work(400) < 2.2 * work(200)


def test_an_empty_file_is_not_the_built_in_one(tmp_path: Path) -> None:
    """A text may be left out; whoever names a file means what stands in it."""
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(ConfigurationError, match=r"empty\.yaml:1:1: the text says nothing"):
        load_file(tmp_path / "empty.yaml")


def test_a_key_that_slipped_in_among_the_properties_is_told_where_it_belongs() -> None:
    """`maxapplications` there limits nothing; that another property is named like it helped nobody."""
    text = """
partitions:
  - name: default
    queues:
      - name: team
        parent: true
        properties: {maxApplications: "4", application.sort.polcy: fair}
        childtemplate: {properties: {maxapplications: "2", submitacl: sue}}
"""
    slipped = "; it is a key of its own: write it beside properties"
    kept = " is no property that is acted on; it is kept and inherited"
    assert [p.message for p in check_text(text)] == [
        f"maxApplications{kept}{slipped}",
        f"application.sort.polcy{kept}; did you mean application.sort.policy?",
        f"maxapplications{kept}{slipped}",
        f"submitacl{kept}",
    ]


def test_a_config_map_is_told_from_the_queue_file_in_it() -> None:
    """Each of its keys was said to be unknown, and nothing of where the queue file is."""
    text = "apiVersion: v1\nkind: ConfigMap\ndata:\n  queues.yaml: |\n    partitions: []\n"
    assert [str(p) for p in problems_of(text)] == [
        "q.yaml:2:7: a Kubernetes object (ConfigMap), not a queue file; give the text under its data, queues.yaml"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\n",
            "2:7: a Kubernetes object (ClusterQueue), not a queue file; of a ClusterQueue write nominalQuota as ",
        ),
        (
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nspec: {weight: 1}\n",
            "2:7: a Kubernetes object (Queue), not a queue file; write capability as resources.max of a queue, and ",
        ),
        (
            "apiVersion: fairlead.io/v1alpha1\nkind: Queue\n",
            "2:7: a Kubernetes object (Queue), not a queue file; kubectl apply takes it",
        ),
        (
            "replicas: 1\nyunikornDefaults:\n  queues.yaml: |\n    partitions: []\n",
            "3:3: values of a Helm chart, not a queue file; give the text under yunikornDefaults, queues.yaml",
        ),
    ],
)
def test_queues_of_others_are_told_what_they_are_here(text: str, said: str) -> None:
    """It was to give the text under their data, which they do not have."""
    [problem] = problems_of(text)
    assert str(problem).startswith(f"q.yaml:{said}")
