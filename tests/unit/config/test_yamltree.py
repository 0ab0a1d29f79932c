from __future__ import annotations

import pytest

from fairlead.config import ConfigurationError, check_text, load_text
from fairlead.config.yamltree import MAX_CHARACTERS, MAX_DEPTH, YamlError, compose, yaml_node

TOP = "partitions: [{queues: [{name: root, queues: [%s]}]}]"


def refusal(text: str) -> tuple[int, int, str]:
    with pytest.raises(YamlError) as caught:
        compose(text)
    return caught.value.line, caught.value.column, caught.value.message


@pytest.mark.parametrize("word", ["no", "010", "1:30", "2020-01-01", "1_000", "on"])
def test_scalars_stay_the_text_they_were_written_as(word: str) -> None:
    """YAML 1.1 would make truth values, octal and sexagesimal numbers and dates of them."""
    root = compose(f"[{word}]").root
    assert root
    assert root.items[0].text == word


def test_broken_yaml_is_refused_with_its_place() -> None:
    """The parser's own words, with line and column."""
    line, column, message = refusal("a: [1,\n b: }")
    assert (line, column) == (2, 5)
    assert message.startswith("not readable as YAML")


def test_a_tab_as_indent_gets_advice() -> None:
    """The most common mistake of all."""
    assert refusal("a:\n\tb: 1")[2].endswith("indent with blanks, not tabs")


def test_an_asterisk_without_quotation_marks_gets_advice() -> None:
    """As in `submitacl: *`, which YAML takes for an alias."""
    line, column, message = refusal("a:\n  submitacl: *\n")
    assert (line, column) == (2, 15)
    assert message.endswith('in quotation marks: "*"')


def test_nesting_is_bounded() -> None:
    """Deep nesting is refused before anything recurses into it."""
    assert f"nested deeper than {MAX_DEPTH} levels" in refusal("[" * 100_000)[2]


def test_size_is_bounded() -> None:
    """Counted before parsing."""
    assert "at most" in refusal(" " * (MAX_CHARACTERS + 1))[2]


def test_aliases_that_multiply_are_refused() -> None:
    """Nine levels of nine would be 400 million values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    assert "counting what aliases repeat" in refusal("\n".join(lines))[2]


def test_an_anchor_that_contains_itself_is_refused() -> None:
    """A cycle has no end."""
    assert refusal("a: &q [x, *q]")[2].startswith("the anchor &q contains itself")


def test_an_alias_without_anchor_is_refused() -> None:
    """The name is given."""
    assert "*nothing" in refusal("a: *nothing")[2]


def test_a_control_character_is_refused_with_its_place() -> None:
    """Line and column count characters."""
    assert refusal("a: 1\nü: \x00")[:2] == (2, 4)


def test_half_a_character_is_refused() -> None:
    """A lone surrogate cannot come from a valid file."""
    assert refusal("a: \ud800")[:2] == (1, 4)


@pytest.mark.parametrize("text", ["a: !thing x", "a: !!binary aGk=", "a: !!bool maybe", "a: !!seq {}"])
def test_tags_without_meaning_are_refused(text: str) -> None:
    """They would change what a value is behind the reader's back."""
    assert "tag" in refusal(text)[2]


def test_the_standard_tag_for_text_is_understood() -> None:
    """`!!str 5` is the text 5."""
    root = compose("!!str 5").root
    assert root
    assert root.text == "5"
    assert not root.plain


def test_only_the_first_document_counts_and_the_second_is_pointed_out() -> None:
    """A warning at the place where the second begins, even if that one is broken."""
    text = TOP % "{name: a}" + "\n---\n[[[ }"
    (problem,) = check_text(text)
    assert (problem.line, problem.severity) == (2, "warning")
    assert load_text(text).partitions[0].root.queues[0].name == "a"


def test_text_that_falls_out_of_the_document_is_refused() -> None:
    """A wrong indent at the top would otherwise drop the rest silently."""
    with pytest.raises(ConfigurationError, match="look at its indent"):
        load_text(" partitions:\n- name: default\n")


def test_merge_keys_fill_in_what_is_not_given() -> None:
    """A queue merged into others; their own keys win, of a list of merges the earlier."""
    text = (
        TOP % "&a {name: a, maxapplications: 3, submitacl: x}, {<<: *a, name: b}, {name: c, <<: [{submitacl: y}, *a]}"
    )
    queues = load_text(text).partitions[0].root.queues
    assert [(q.name, q.max_applications, q.submit_acl) for q in queues] == [("a", 3, "x"), ("b", 3, "x"), ("c", 3, "y")]


def test_an_unknown_key_that_was_merged_in_is_found_where_it_stands() -> None:
    """The place is that of the merged mapping."""
    (problem,) = check_text(TOP % "{<<: {surprise: 1}, name: b}")
    assert problem.path.endswith("queues[0].surprise")
    assert problem.column == 52


ODD = [
    "a: 1\n---\nb: 2\n",
    "a: 1\n---\n",
    "a: 1\t# a tab before a comment\n",
    "a: &x 1\nb: &x 2\nc: *x\n",
    "\ufeffa: 1\n",
]
"""What the checks take, and PyYAML's own reader does not, or counts otherwise."""


@pytest.mark.parametrize("text", ODD)
def test_a_text_that_the_checks_take_can_be_edited(text: str) -> None:
    """Its first document is there as PyYAML's nodes, each with its place in the text."""
    root = compose(text).root
    assert root
    node = yaml_node(text)
    assert [key.value for key, _ in node.value] == [key.text for key, _ in root.pairs()]
    assert [value.value for _, value in node.value] == [value.text for _, value in root.pairs()]
    key, value = node.value[0]
    assert text[key.start_mark.index : key.end_mark.index] == "a"
    assert text[value.end_mark.index - 1 : value.end_mark.index] == "1"
    assert key.start_mark.column == 0


def test_a_text_that_is_refused_or_says_nothing_has_no_node() -> None:
    """The same error as that of the checks."""
    assert yaml_node("# nothing\n") is None
    with pytest.raises(YamlError, match="has no anchor"):
        yaml_node("a: *nothing")
