"""What no committed file may say."""

import re

from tests.tidy.sources import texts

# Split, so that this file does not find itself.
_DEFERRED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|HA" r"CK|for " r"now(?! in ))\b")
_REGISTRY = re.compile(
    r"pypi\.o"
    r"rg|pythonhosted\.o"
    r"rg|registry\.npm"
    r"js|static\.crates|index\.crates"
    r"|proxy\.golang|repo1?\.maven|deb\.debian\.o"
    r"rg"
)
_MACHINE = re.compile(r"(?<![\w.$})-])/(?:ro" r"ot|wo" r"rk|ho" r"me)/")


def _lines_with(pattern: re.Pattern[str], *suffixes: str) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts(*suffixes)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_work_is_deferred_in_a_comment() -> None:
    assert _lines_with(_DEFERRED) == []


def test_no_file_names_a_package_registry() -> None:
    assert _lines_with(_REGISTRY) == []


def test_no_file_names_a_directory_of_one_machine() -> None:
    assert _lines_with(_MACHINE) == []
