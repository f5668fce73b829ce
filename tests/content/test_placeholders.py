"""Placeholders: filled in one pass, escaped in HTML, and never read again."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.content.compose import Person, variables
from tocsin.content.placeholders import (
    FILLED_MAX,
    as_html,
    as_text,
    bind,
    compile_text,
    fill,
    fill_html,
    fill_line,
    filled_length,
)
from tocsin.domain.errors import Invalid

NAMES = st.sampled_from(["name", "a.b", "x_1"])
TEXT = st.text(max_size=20)
TEMPLATES = st.lists(
    st.one_of(TEXT, NAMES.map(lambda n: "{{" + n + "}}"), NAMES.map(lambda n: "{{ " + n + "  }}")),
    max_size=8,
).map("".join)
VALUES = st.dictionaries(NAMES, TEXT | st.integers() | st.none() | st.booleans())


def test_spaces_inside_the_braces_do_not_matter() -> None:
    assert fill(compile_text("{{name}} {{ name }}"), {"name": "Ada"}) == "Ada Ada"


def test_a_value_is_never_read_as_a_placeholder() -> None:
    values = {"a": "{{b}}", "b": "secret"}

    assert fill(compile_text("{{a}}"), values) == "{{b}}"


def test_a_name_without_a_value_stays_as_it_is_written() -> None:
    assert fill(compile_text("Hi {{nobody}}"), {}) == "Hi {{nobody}}"


def test_html_escapes_what_a_value_brings() -> None:
    assert fill_html(compile_text("<p>{{v}}</p>"), {"v": "<img src='x'>"}) == (
        "<p>&lt;img src=&#x27;x&#x27;&gt;</p>"
    )


def test_objects_become_json_and_null_becomes_nothing() -> None:
    assert fill(compile_text("{{o}}|{{n}}"), {"o": {"a": [1]}, "n": None}) == '{"a":[1]}|'


def test_a_line_break_in_a_value_does_not_end_the_subject() -> None:
    filled = fill_line(compile_text("Hi {{n}}"), {"n": "Ada\r\nBcc: eve@example.com"})

    assert filled == "Hi Ada Bcc: eve@example.com"


def test_dots_look_into_objects_and_a_key_with_a_dot_stands_first() -> None:
    values = {"data": {"plan": "pro"}, "data.plan": "basic"}

    assert fill(compile_text("{{data.plan}}"), values) == "basic"
    assert fill(compile_text("{{data.plan}}"), {"data": {"plan": "pro"}}) == "pro"


def test_a_subscribers_fields_are_variables() -> None:
    values = variables(Person(subscriber_id="u1", first_name="Ada", data='{"plan":"pro"}'))

    text = "{{first_name}} {{subscriber.id}} {{data.plan}}{{last_name}}"
    assert fill(compile_text(text), values) == "Ada u1 pro"


@given(TEMPLATES, VALUES)
def test_binding_first_and_filling_later_gives_the_same(
    template: str, values: dict[str, object]
) -> None:
    early = {k: v for k, v in values.items() if k != "name"}
    text = compile_text(template)

    assert fill(bind(text, early, as_text), values) == fill(text, values)
    assert fill_html(bind(text, early, as_html), values) == fill_html(text, values)


@given(TEMPLATES)
def test_a_text_without_values_is_itself_but_for_the_spaces_in_its_braces(template: str) -> None:
    filled = fill(compile_text(template), {})

    assert filled == fill(compile_text(filled), {})


@given(st.text())
def test_an_escaped_value_reads_back_as_it_was(value: str) -> None:
    assert html.unescape(fill_html(compile_text("{{v}}"), {"v": value})) == html.unescape(
        html.escape(value)
    )


def test_a_short_text_that_asks_for_a_long_value_often_is_refused_at_once() -> None:
    text = compile_text("{{v}}" * 200_000)
    values = {"v": "x" * 1_000_000}

    for filler in (lambda: fill(text, values), lambda: bind(text, values, as_text)):
        with pytest.raises(Invalid) as refused:
            filler()
        assert refused.value.code == "filled_too_long"
    assert filled_length("{{v}}" * 200_000, values) == FILLED_MAX + 1


@given(TEMPLATES, VALUES)
def test_the_length_is_that_of_the_filled_text_but_for_the_braces_that_stay(
    template: str, values: dict[str, object]
) -> None:
    filled = fill(compile_text(template), values)
    kept = len([n for n in compile_text(template)[1::2] if n not in values])

    assert filled_length(template, values) == len(filled) - 4 * kept
