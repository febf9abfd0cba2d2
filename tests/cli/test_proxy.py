"""`edgefast proxy` takes its own options beside those of all serving commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from edgefast.cli.main import main

pytestmark = pytest.mark.pure


def test_options_come_to_the_command(tmp_path: Path) -> None:
    """As far as the first that is wrong: it is said which, by its name."""
    ca, token = tmp_path / "ca", tmp_path / "token"
    ca.write_text("")
    token.write_text("")
    given = ["--xds", "a.test:1", "--ca", str(ca), "--token", str(token), "--zone", "a"]
    for node in ("", "x" * 1000):
        result = CliRunner().invoke(main, ["proxy", *given, "--node", node])
        assert result.exit_code == 2 and "Invalid value for --node" in result.output
