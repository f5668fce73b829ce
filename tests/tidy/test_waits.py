"""Tests wait for events, never for time to pass."""

import ast

from tests.tidy.sources import modules


def _sleeps(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    # `sleep(0)` lets other tasks run; it waits for nothing.
    yields = bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
    return name == "sleep" and not yields


def test_no_test_sleeps() -> None:
    sleeping = [
        f"{name}:{node.lineno}"
        for name, tree in modules("tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _sleeps(node)
    ]

    assert sleeping == []
