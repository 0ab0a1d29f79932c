"""Whatever somebody calls a job, it is shown as text."""

from __future__ import annotations

from fairlead.web.html import div, element, joined
from fairlead.web.words import job_link, job_path


def test_texts_and_attributes_are_escaped_and_elements_are_not() -> None:
    shown = div("<b>", div("a & b", title='say "x"'), None, ["<i>", 3], data_key="<")
    assert shown == ('<div data-key="&lt;">&lt;b&gt;<div title="say &quot;x&quot;">a &amp; b</div>&lt;i&gt;3</div>')


def test_attributes_without_a_value_and_left_out() -> None:
    assert element("input", required=True, disabled=False, id=None) == "<input required>"
    assert joined("<", None, element("br")) == "&lt;<br>"


def test_the_name_of_a_job_is_no_html_and_its_key_no_path() -> None:
    assert "<script>" not in job_link("7", "<script>alert(1)</script>")
    assert job_path("ns/../x") == "/job/ns%2F..%2Fx"
