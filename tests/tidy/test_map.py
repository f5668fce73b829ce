"""The map in docs/ARCHITECTURE.md cannot go stale."""

from difflib import unified_diff

from tests.tidy.map import BEGIN, DOCUMENT, END, caption, drawn, redraw, render
from tests.tidy.sources import ROOT, modules


def test_the_map_is_the_captions_of_the_modules() -> None:
    stale = unified_diff(drawn(DOCUMENT.read_text()).split("\n"), render().split("\n"), n=0)

    assert list(stale) == [], "run: make map"


def test_redrawing_leaves_everything_around_the_map_alone() -> None:
    document = f"before\n{BEGIN}\nold\n{END}\nafter\n"

    assert redraw(document) == f"before\n{BEGIN}\n{render()}\n{END}\nafter\n"
    assert redraw(redraw(document)) == redraw(document)


def test_every_module_says_in_its_first_line_what_it_is_for() -> None:
    assert [name for name, _ in modules("src", "bench") if not caption(ROOT / name)] == []
