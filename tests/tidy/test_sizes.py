"""Files and functions stay small enough to read in one go."""

from tests.tidy.sources import functions, modules, texts

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
_CODE = (".py", ".sql", ".sh", ".ts", ".js", ".svelte", ".css")


def test_no_file_is_longer_than_its_limit() -> None:
    long = {name: text.count("\n") for name, text in texts(*_CODE)}

    assert {name: lines for name, lines in long.items() if lines > FILE_LINES_MAX} == {}


def test_no_function_is_longer_than_its_limit() -> None:
    long = {
        f"{name}:{function.lineno} {function.name}": lines
        for name, tree in modules()
        for function in functions(tree)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    }

    assert long == {}
