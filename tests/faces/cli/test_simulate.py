"""`tocsin simulate` hands everything on to the simulator, its --help too."""

import pytest

from tests.support.program import tocsin


@pytest.mark.parametrize("provider", ["smtp", "resend"])
async def test_help_is_the_simulators_own(provider: str) -> None:
    async with tocsin("simulate", provider, "--help") as program:
        code, out, err = await program.end()

    assert (code, err) == (0, "")
    assert "--journal JOURNAL" in out
    assert "prints" in out


async def test_options_are_handed_on() -> None:
    async with tocsin("simulate", "smtp", "--port", "many") as program:
        code, out, err = await program.end()

    assert (code, out) == (2, "")
    assert "invalid int value: 'many'" in err
