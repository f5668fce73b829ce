"""Names say what a thing is; a name that fits anything is refused."""

import re

from tests.tidy.sources import files, functions, modules

#: A drawer for everything, alone or as the last word of a name.
_DRAWER = re.compile(r"(?:^|_)(?:utils?|helpers?|commons?|managers?|misc)$")
_SENTENCE_WORDS_MIN = 3


def test_no_file_is_a_drawer_for_everything() -> None:
    assert [path.name for path in files() if _DRAWER.search(path.stem.lower())] == []


def test_a_test_is_named_with_the_sentence_it_proves() -> None:
    terse = [
        f"{name} {function.name}"
        for name, tree in modules("tests")
        for function in functions(tree)
        if function.name.startswith("test")
        and len(function.name.removeprefix("test_").split("_")) < _SENTENCE_WORDS_MIN
    ]

    assert terse == []


def test_every_file_with_tests_is_one_that_pytest_collects() -> None:
    overlooked = [
        name
        for name, tree in modules("tests")
        if not name.rpartition("/")[2].startswith("test_")
        and any(function.name.startswith("test_") for function in functions(tree))
    ]

    assert overlooked == []
