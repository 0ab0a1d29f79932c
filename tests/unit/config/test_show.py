from __future__ import annotations

import pytest
import yaml

from fairlead.config import default_text, load_text
from fairlead.config.show import as_tree, as_yaml
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import ClusterSpec, PartitionSpec, QueueSpec

TEXT = """
partitions:
  - name: Default
    preemption: {enabled: true}
    limits: [{limit: l, users: [u], maxresources: {vcore: "1"}}]
    placementrules: [{name: user, create: true, parent: {name: fixed, value: a}}]
    queues:
      - name: a
        parent: true
        resources: {max: {vcore: 10, memory: 1Gi}}
        childtemplate: {resources: {guaranteed: {vcore: 500m}}}
        properties: {Some.Key: X}
"""


def test_the_json_form_has_capitalised_names_and_empty_structures() -> None:
    """Root inserted, limits at both places, quantities as written."""
    spec = load_text(TEXT)
    limits = [{"Limit": "l", "Users": ["u"], "MaxResources": {"vcore": "1"}}]
    assert as_tree(spec) == {
        "Partitions": [
            {
                "Name": "default",
                "Queues": [
                    {
                        "Name": "root",
                        "Parent": True,
                        "Resources": {},
                        "ChildTemplate": {"Resources": {}},
                        "Queues": [
                            {
                                "Name": "a",
                                "Parent": True,
                                "Resources": {"Max": {"memory": "1Gi", "vcore": "10"}},
                                "Properties": {"Some.Key": "X"},
                                "ChildTemplate": {"Resources": {"Guaranteed": {"vcore": "500m"}}},
                            }
                        ],
                        "Limits": limits,
                    }
                ],
                "PlacementRules": [
                    {
                        "Name": "user",
                        "Create": True,
                        "Filter": {},
                        "Parent": {"Name": "fixed", "Filter": {}, "Value": "a"},
                    }
                ],
                "Limits": limits,
                "Preemption": {"Enabled": True},
                "NodeSortPolicy": {},
                "UserGroupResolver": {},
            }
        ],
        "Checksum": spec.checksum,
        "Extra": {},
        "DeadlockDetectionEnabled": False,
        "DeadlockTimeoutSeconds": 0,
    }


@pytest.mark.parametrize("text", [TEXT, default_text(), ""])
def test_the_yaml_form_reads_back_to_the_same_configuration(text: str) -> None:
    """Without the settings that are not part of a queue file."""
    spec = load_text(text)
    shown = yaml.safe_load(as_yaml(spec))
    again = load_text(yaml.safe_dump({"partitions": shown["partitions"]}))
    assert again.partitions == spec.partitions


def test_the_yaml_form_has_lower_case_keys_and_leaves_out_what_is_empty() -> None:
    """Names that the user chose keep their case."""
    shown = yaml.safe_load(as_yaml(load_text(TEXT)))
    assert list(shown) == ["partitions", "checksum", "extra", "deadlockdetectionenabled", "deadlocktimeoutseconds"]
    (partition,) = shown["partitions"]
    assert "nodesortpolicy" not in partition
    assert partition["queues"][0]["queues"][0]["properties"] == {"Some.Key": "X"}


def test_a_spec_without_text_shows_exact_quantities() -> None:
    """Thousandths of vcore, units of the rest."""
    queue = QueueSpec(name="a", max=Limits({"vcore": 1500, "memory": 1024}))
    root = QueueSpec(name="root", parent=True, queues=(queue,))
    shown = as_tree(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    assert shown["Partitions"][0]["Queues"][0]["Queues"][0]["Resources"] == {
        "Max": {"memory": "1024", "vcore": "1500m"}
    }
