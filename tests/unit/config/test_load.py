from __future__ import annotations

import hashlib

import pytest

from fairlead.config import ConfigurationError, check_text, checksum_of, default_text, load_text
from fairlead.config.load import not_yet
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import ClusterSpec, NodeSortSpec, PartitionSpec, PreemptionSpec, QueueSpec, RuleSpec


def partition(text: str) -> PartitionSpec:
    """The only partition of a text."""
    (only,) = load_text(text).partitions
    return only


def refused(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    return [p.message for p in caught.value.errors]


def test_a_whole_file_becomes_a_spec() -> None:
    """Every key of every level arrives in its field."""
    text = """
partitions:
  - name: DEFAULT
    stateaware: true
    preemption: {enabled: false, quotapreemptionenabled: true, rule: priority}
    nodesortpolicy: {type: binpacking, resourceweights: {vcore: 2, gpu: 0.5}}
    usergroupresolver: {type: os}
    placementrules:
      - {name: tag, value: team, create: true, filter: {type: deny, users: [u]}, parent: {name: fixed, value: a}}
    limits: [{limit: all, users: ["*"], groups: [g], maxresources: {vcore: 10}, maxapplications: 9}]
    queues:
      - name: root
        queues:
          - name: a
            parent: true
            resources: {guaranteed: {vcore: "500m"}, max: {vcore: 4, memory: 2Gi, gpu: 0}}
            maxapplications: 7
            properties: {priority.offset: 5}
            adminacl: boss
            submitacl: u g
            childtemplate: {maxapplications: 2, properties: {a: b, "": c, d: " "}, resources: {max: {vcore: 1}}}
"""
    only = partition(text)
    assert only.name == "default"
    assert only.state_aware
    assert only.user_group_resolver == "os"
    assert only.preemption == PreemptionSpec(enabled=False, quota_enabled=True, rule="priority")
    assert only.node_sort == NodeSortSpec(policy="binpacking", weights={"vcore": 2.0, "gpu": 0.5})
    (rule,) = only.placement_rules
    assert (rule.name, rule.create, rule.value, rule.parent) == ("tag", True, "team", RuleSpec(name="fixed", value="a"))
    assert rule.filter
    assert (rule.filter.type, rule.filter.users) == ("deny", ("u",))
    (limit,) = only.root.limits
    assert (limit.users, limit.groups, limit.max_resources) == (("*",), ("g",), Limits({"vcore": 10_000}))
    (queue,) = only.root.queues
    assert (queue.guaranteed, queue.max) == (Limits({"vcore": 500}), Limits({"vcore": 4000, "memory": 2**31, "gpu": 0}))
    assert (queue.max_applications, queue.properties, queue.admin_acl) == (7, {"priority.offset": "5"}, "boss")
    template = queue.child_template
    assert template
    assert (template.max_applications, template.properties) == (2, {"a": "b"})
    assert template.max == Limits({"vcore": 1000})


def test_what_is_absent_has_its_default() -> None:
    """The smallest file."""
    assert partition("partitions: [{queues: [{name: root}]}]") == PartitionSpec(
        root=QueueSpec(name="root", parent=True)
    )


@pytest.mark.parametrize(
    "queues",
    ["[{name: a}]", "[{name: root}, {name: a}]", "[]", "[{name: a}, {name: b}]"],
    ids=["one", "root+", "none", "two"],
)
def test_a_root_is_put_above_whatever_is_not_exactly_one_root(queues: str) -> None:
    """The inserted root lets nobody in by itself."""
    root = partition(f"partitions: [{{queues: {queues}}}]").root
    assert (root.name, root.parent, root.submit_acl) == ("root", True, "")
    assert len(root.queues) == queues.count("name")


def test_places_are_those_of_the_file_even_below_an_inserted_root() -> None:
    """The path does not name a queue that is not in the text."""
    problems = check_text("partitions: [{queues: [{name: a, maxapplications: 2, queues: [{name: b}]}]}]")
    assert [p.path for p in problems] == ["partitions[0].queues[0].queues[0].maxapplications"]


def test_limits_of_the_partition_become_those_of_the_root() -> None:
    """Only when the root has none of its own."""
    assert partition("partitions: [{limits: [{users: [u], maxapplications: 1}], queues: [{name: root}]}]").root.limits[
        0
    ].users == ("u",)


@pytest.mark.parametrize("value", ["10", '"10"', "'10'", "!!str 10", "10 "])
def test_a_quantity_may_be_written_with_or_without_quotes(value: str) -> None:
    """Both are the text 10."""
    queue = partition(f"partitions: [{{queues: [{{name: a, resources: {{max: {{vcore: {value}}}}}}}]}}]").root.queues[0]
    assert queue.max == Limits({"vcore": 10_000})


@pytest.mark.parametrize("value", ["9" * 5000, "٣", "1.5", "-1", "10m", "~"])
def test_a_bad_quantity_is_one_problem(value: str) -> None:
    """Also those with thousands of digits or digits of another script."""
    messages = refused(f"partitions: [{{queues: [{{name: a, resources: {{max: {{memory: {value}}}}}}}]}}]")
    assert len(messages) == 1
    assert messages[0].startswith("invalid ")


@pytest.mark.parametrize(
    ("written", "value"), [("0x10", 16), ("1_000", 1000), ("1e3", 1000), ("010", 8), ("08", 8), ("~", 0)]
)
def test_counts_are_read_as_yunikorn_reads_them(written: str, value: int) -> None:
    """All the ways to write a whole number."""
    assert (
        partition(f"partitions: [{{queues: [{{name: a, maxapplications: {written}}}]}}]")
        .root.queues[0]
        .max_applications
        == value
    )


@pytest.mark.parametrize("written", ["010", "1.5"])
def test_a_count_that_reads_otherwise_than_it_looks_is_warned_about(written: str) -> None:
    """An octal number, a fraction."""
    (problem,) = check_text(f"partitions: [{{queues: [{{name: a, maxapplications: {written}}}]}}]")
    assert problem.severity == "warning"
    assert "is read as" in problem.message


@pytest.mark.parametrize(("written", "value"), [("010", 8), ("08", 8), ("007", 7)])
def test_what_begins_with_0_is_said_as_the_number_that_counts(written: str, value: int) -> None:
    """`08` was shown as 8.0, and of a priority class or a budget nothing was said at all."""
    queues = "partitions: [{queues: [{name: a, maxapplications: %s}]}]"
    classes = "partitions: [{queues: [{name: a}]}]\npriorityclasses: [{name: high, value: %s}]"
    by_rank = "partitions: [{queues: [{name: a}], preemption: {rule: both}}]"
    budgets = by_rank + "\nbudgets: [{name: two, selector: {a: b}, minAvailable: %s}]"
    for text in (queues, classes, budgets) if written != "08" else (queues,):
        (problem,) = check_text(text % written)
        assert problem.severity == "warning"
        assert problem.message == f"{written} is read as {value}, because it starts with 0; write {value}"


@pytest.mark.parametrize(("name", "example"), [("vcore", "500m"), ("memory", "512Mi"), ("gpu", "10k")])
def test_the_example_is_one_for_that_resource(name: str, example: str) -> None:
    """For memory it was 500m, which memory does not take."""
    (message,) = refused(f"partitions: [{{queues: [{{name: a, resources: {{max: {{{name}: 1.5}}}}}}]}}]")
    assert example in message


@pytest.mark.parametrize("text", ["# nothing", "{}", "~", "partitions: []", "partitions:"])
def test_a_file_without_partition_is_refused(text: str) -> None:
    """It would schedule nothing, silently."""
    assert any("needs at least one partition" in message for message in refused(text))


def test_the_empty_string_is_the_built_in_default() -> None:
    """One root open to all, a queue by namespace."""
    only = partition("")
    assert only.root == QueueSpec(name="root", parent=True, submit_acl="*")
    assert only.placement_rules == (RuleSpec(name="tag", value="namespace", create=True),)


def test_the_file_of_the_package_is_clean_and_all_of_it_works() -> None:
    """No problem, no warning, nothing that is not done yet."""
    assert check_text(default_text()) == []
    assert not_yet(load_text(default_text())) == []


def test_the_checksum_leaves_out_the_one_in_the_text() -> None:
    """SHA-256, upper case."""
    body = "partitions: [{queues: [{name: root}]}]\n"
    plain = hashlib.sha256(body.encode()).hexdigest().upper()
    assert load_text(body).checksum == plain
    assert checksum_of(body + f"checksum: {plain}") == plain


def test_a_wrong_checksum_is_warned_about() -> None:
    """It is computed anyway."""
    (problem,) = check_text("partitions: [{queues: [{name: root}]}]\nchecksum: abc\n")
    assert (problem.path, problem.value, problem.severity) == ("checksum", "abc", "warning")


def test_several_partitions_are_independent() -> None:
    """Names are compared without case, kept as written."""
    spec = load_text("partitions: [{queues: [{name: root}]}, {name: GPU, queues: [{name: x}]}]")
    assert [p.name for p in spec.partitions] == ["default", "GPU"]
    assert refused("partitions: [{name: gpu, queues: []}, {name: GPU, queues: []}]")[0].startswith("a second partition")


@pytest.mark.parametrize(
    "rule", ["{name: nonsense}", "{name: tag}", "{name: recovery}", "{name: fixed, value: a..b, create: true}"]
)
def test_rules_that_can_never_be_built_are_refused_unless_told_otherwise(rule: str) -> None:
    """A start that would reject every application is no start."""
    text = f"partitions: [{{queues: [{{name: root}}], placementrules: [{rule}]}}]"
    assert len(refused(text)) == 1
    assert isinstance(load_text(text, keep_broken_rules=True), ClusterSpec)


@pytest.mark.parametrize("who", ["(?=x)y", "(?<!x)y", r"(a)\1", "a++", "[bad"])
def test_expressions_that_go_does_not_have_are_refused(who: str) -> None:
    """A file must mean the same to YuniKorn."""
    text = f"partitions: [{{queues: [{{name: root}}], placementrules: [{{name: user, filter: {{users: ['{who}']}}}}]}}]"
    assert "matches nobody" in refused(text)[0]


@pytest.mark.parametrize("acl", ["us!er", "a,*", "a:b", "a g:h"])
def test_names_in_access_lists_that_match_nobody_are_warned_about(acl: str) -> None:
    """YuniKorn drops them without a word."""
    (problem,) = check_text(f"partitions: [{{queues: [{{name: root, submitacl: '{acl}'}}]}}]")
    assert problem.severity == "warning"
    assert "matches nobody" in problem.message


def test_a_maximum_of_zero_only_is_warned_about() -> None:
    """It counts as unlimited, which is the opposite of what it looks like."""
    (problem,) = check_text("partitions: [{queues: [{name: a, resources: {max: {vcore: 0}}}]}]")
    assert problem.path == "partitions[0].queues[0].resources.max"
    assert "counts as not set" in problem.message


@pytest.mark.parametrize(
    ("name", "meant"), [("cpu", "vcore"), ("vcores", "vcore"), ("mem", "memory"), ("Memory", "memory")]
)
def test_what_others_call_cores_and_memory_is_warned_about(name: str, meant: str) -> None:
    """Such a maximum, guarantee or limit would bound nothing. Other names are anybody's."""
    limits = f"limits: [{{limit: x, users: [ann], maxresources: {{{name}: 2}}}}]"
    amounts = f"resources: {{max: {{{name}: 2, vcore: 2}}, guaranteed: {{{name}: 1}}}}"
    found = check_text(f"partitions: [{{queues: [{{name: a, {amounts}, {limits}}}]}}]")
    assert {problem.severity for problem in found} == {"warning"}
    at = "partitions[0].queues[0]"
    assert {problem.path for problem in found} == {
        f"{at}.{place}.{name}" for place in ("resources.max", "resources.guaranteed", "limits[0].maxresources")
    }
    assert all(problem.message.endswith(f"did you mean {meant}?") for problem in found)
    assert check_text("partitions: [{queues: [{name: a, resources: {max: {nvidia.com/gpu: 2, memory: 1Gi}}}]}]") == []


def test_the_rule_of_preemption_is_one_of_two() -> None:
    """A near miss gets a suggestion."""
    assert refused("partitions: [{queues: [], preemption: {rule: guaranty}}]")[0].endswith("did you mean guarantee?")


def test_duplicate_keys_are_errors_with_both_lines() -> None:
    """On every level, in maps of names too."""
    assert refused("partitions: [{queues: [{name: a,\n name: b}]}]")[0].startswith(
        "the key name is already there in line 1"
    )
    assert refused("partitions: [{queues: [{name: a, properties: {x: 1, x: 2}}]}]")[0].startswith(
        "the key x is already there"
    )


def test_messages_name_the_queue_and_the_numbers() -> None:
    """A guarantee above what the parent has, in units for people."""
    text = """
partitions:
- queues:
  - name: a
    resources: {guaranteed: {memory: 3Gi}}
    queues: [{name: b, resources: {guaranteed: {memory: 2Gi}}}, {name: c, resources: {guaranteed: {memory: 2Gi}}}]
"""
    assert refused(text) == [
        "the children of root.a are guaranteed memory 4Gi together, more than its own 3Gi; raise it or lower theirs"
    ]


@pytest.mark.parametrize(
    ("rule", "at"),
    [
        ("{name: fixed}", ""),
        ("{name: fixed, create: true}", ""),
        ("{name: user, parent: {name: fixed}}", ".parent"),
        ("{name: fixed, value: a, parent: {name: fixed, value: ''}}", ".parent"),
        ("{name: fixed, parent: {name: fixed, value: root.a}}", ""),
    ],
)
def test_a_fixed_rule_without_a_value_is_told_once(rule: str, at: str) -> None:
    """Not as a queue "root." that is missing, which nobody wrote."""
    queues = "[{name: root, queues: [{name: a}]}]"
    [problem] = check_text(f"partitions: [{{name: default, placementrules: [{rule}], queues: {queues}}}]")
    assert problem.message == "a fixed rule needs a queue name as value"
    assert problem.path == f"partitions[0].placementrules[0]{at}.value"


def test_the_built_in_file_protects_guarantees_and_priorities() -> None:
    """Whoever adds a guarantee to a copy of it has it kept, and without one priorities decide."""
    [only] = load_text(default_text()).partitions
    assert only.preemption == PreemptionSpec(rule="both")
