"""`edgefast problem`: pages of reasons on a terminal, and the way to them from `edgefast check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.calling import call
from edgefast.diagnostics.reasons.catalogue import PAGES

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]


def test_a_page() -> None:
    outcome = call("problem", "notsupported")
    assert outcome.status == 0
    assert outcome.out.startswith("# NotSupported\n")
    assert "did you mean PathPrefix?" in outcome.out


def test_several_pages() -> None:
    outcome = call("problem", "Shadowed", "BackendNotFound")
    assert [line for line in outcome.out.splitlines() if line.startswith("# ")] == [
        "# Shadowed",
        "# BackendNotFound",
    ]


def test_all_of_them() -> None:
    lines = call("problem").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(PAGES)


def test_a_word_that_is_none() -> None:
    outcome = call("problem", "BackendNotFoun")
    assert outcome.status == 2
    assert "did you mean BackendNotFound?" in outcome.err


def test_check_names_the_page_and_the_command(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("apiVersion: v1\nkind: Service\n")
    outcome = call("check", "-f", str(path), "-o", "json")
    (told,) = {one["page"] for one in json.loads(outcome.out)}
    assert (ROOT / told).exists()
    assert outcome.err.splitlines()[-1].endswith("; more about it: edgefast problem Required")
