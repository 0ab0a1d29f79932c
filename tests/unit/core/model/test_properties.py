from __future__ import annotations

import pytest

from fairlead.core.model.properties import KNOWN, QueueProperties, inherited, parse_duration_ms, unreadable


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("30s", 30_000), ("+500ms", 500), ("1h2m3.5s", 3_723_500), (".5s", 500), ("1.s", 1000), ("1d12h", 129_600_000)],
)
def test_go_durations_are_read_as_milliseconds(text: str, milliseconds: int) -> None:
    """Units, sums of units, fractions and a plus sign; and days, which Go does not know."""
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["1ns", "1us", "1µs", "0.1ms"])
def test_durations_below_a_millisecond_are_rounded_up(text: str) -> None:
    """A positive duration never becomes 0, which would mean off."""
    assert parse_duration_ms(text) == 1


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "-5s", "30", "s", ".s", "1w", "1 s", "1s ", "3000000h", "9" * 5000 + "s", "٣s"]
)
def test_what_is_no_positive_duration_is_none(text: str) -> None:
    """Bare numbers, zero, negative ones, unknown units, blanks, overflow, other digits."""
    assert parse_duration_ms(text) is None


def test_without_properties_everything_has_its_default() -> None:
    """An empty map of a leaf."""
    assert QueueProperties.of({}, leaf=True) == QueueProperties()


def test_the_children_of_a_parent_are_always_in_fair_order() -> None:
    """The sort policy is for leaves only; so is the delay of preemption."""
    read = QueueProperties.of({"application.sort.policy": "fifo", "preemption.delay": "5s"}, leaf=False)
    assert (read.sort_policy, read.preemption_delay_ms) == ("fair", 30_000)


@pytest.mark.parametrize(
    ("key", "text", "field", "value"),
    [
        ("application.sort.policy", "fair", "sort_policy", "fair"),
        ("application.sort.policy", "stateaware", "sort_policy", "fifo"),
        ("application.sort.priority", "DISABLED", "priority_sorting", False),
        ("priority.policy", "Fence", "priority_fence", True),
        ("priority.offset", "-2147483648", "priority_offset", -(2**31)),
        ("priority.offset", "+7", "priority_offset", 7),
        ("preemption.policy", "Disabled", "preemption_policy", "disabled"),
        ("preemption.delay", "1m", "preemption_delay_ms", 60_000),
        ("quota.preemption.delay", "2s", "quota_preemption_delay_ms", 2000),
        ("application.unschedasks.backoff", "12", "backoff_threshold", 12),
        ("application.unschedasks.backoff.delay", "100ms", "backoff_delay_ms", 100),
    ],
)
def test_each_property_is_read(key: str, text: str, field: str, value: object) -> None:
    """One known key with a good value."""
    assert getattr(QueueProperties.of({key: text}, leaf=True), field) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("application.sort.policy", "FAIR"),
        ("application.sort.policy", "lifo"),
        ("application.sort.priority", "yes"),
        ("priority.policy", "maybe"),
        ("priority.offset", "2147483648"),
        ("priority.offset", "1_0"),
        ("priority.offset", " 1"),
        ("priority.offset", "٣"),
        ("priority.offset", "9" * 5000),
        ("preemption.policy", ""),
        ("preemption.delay", "soon"),
        ("quota.preemption.delay", "-1s"),
        ("application.unschedasks.backoff", "-1"),
        ("application.unschedasks.backoff", str(2**64)),
        ("application.unschedasks.backoff.delay", "0"),
    ],
)
def test_an_unreadable_value_means_the_default_and_is_pointed_out(key: str, text: str) -> None:
    """Nothing is refused here; `unreadable` names the rule for a warning."""
    assert QueueProperties.of({key: text}, leaf=True) == QueueProperties(raw={key: text})
    assert list(unreadable({key: text})) == [KNOWN[key]]


def test_unknown_properties_are_kept() -> None:
    """They stay in `raw` and change nothing else."""
    read = QueueProperties.of({"team": "red"}, leaf=True)
    assert read.raw == {"team": "red"}
    assert list(unreadable({"team": "red"})) == []


def test_what_cannot_be_read_means_the_default_of_its_field() -> None:
    """For every known key; so each names a field that is there."""
    for rule in KNOWN.values():
        read = QueueProperties.of({rule.key: "?"}, leaf=rule.leaf is not False)
        assert getattr(read, rule.field) == getattr(QueueProperties(), rule.field), rule.key


def test_a_child_overrides_what_it_inherits() -> None:
    """Its own value wins; the other is copied."""
    merged = inherited({"application.sort.policy": "fair", "team": "red"}, {"team": "blue"})
    assert merged == {"application.sort.policy": "fair", "team": "blue"}


def test_priority_is_not_inherited_but_its_keys_are() -> None:
    """A fence or an offset counts once, where it was written."""
    merged = inherited({"priority.policy": "fence", "priority.offset": "100"}, {})
    assert merged == {"priority.policy": "default", "priority.offset": "0"}


@pytest.mark.parametrize(
    ("policy", "passed_on"), [("fence", "default"), ("Disabled", "disabled"), ("default", "default")]
)
def test_of_the_preemption_policies_only_disabled_is_inherited(policy: str, passed_on: str) -> None:
    """A protected parent protects its children; a fence stands where it was put."""
    assert inherited({"preemption.policy": policy}, {}) == {"preemption.policy": passed_on}
