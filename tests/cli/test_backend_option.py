"""`--backend`: every command that reads files adds the same endpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import call
from cli.test_check_served import BACKEND, CLASS, GATEWAY, ROUTE

pytestmark = pytest.mark.pure

SERVICE, _, _ = BACKEND.partition("---")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "shop.yaml"
    path.write_text("---\n".join((CLASS, GATEWAY, ROUTE, SERVICE)))
    return str(path)


def test_check_finds_the_endpoints(file: str) -> None:
    assert "EndpointsNotFound" in call("check", "-f", file).out
    outcome = call("check", "--strict", "-f", file, "--backend", "api=127.0.0.1:3001")
    assert (outcome.status, outcome.out) == (0, "")
    outcome = call("check", "-f", file, "--backend", "apy=127.0.0.1:3001")
    assert outcome.status == 1
    assert "--backend apy=127.0.0.1:3001: NotFound" in outcome.out
    assert "did you mean api?" in outcome.out


def test_explain_and_translate_name_the_address(file: str) -> None:
    backend = ("--backend", "shop/api=127.0.0.1:3001")
    outcome = call("explain", "-f", file, *backend, "http://127.0.0.1:8080/")
    assert outcome.status == 0, outcome.out
    assert "3001" in call("translate", "-f", file, *backend, "-o", "json").out


def test_diff_adds_to_both_sides(file: str, tmp_path: Path) -> None:
    less = tmp_path / "less.yaml"
    less.write_text("---\n".join((CLASS, GATEWAY)))
    outcome = call("diff", str(less), file, "--backend", "api=127.0.0.1:3001")
    assert outcome.status == 1, outcome.out
    assert "--backend" not in outcome.err  # one side has the Service
    outcome = call("diff", file, file, "--backend", "apy=127.0.0.1:3001")
    assert "--backend apy=127.0.0.1:3001: NotFound" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "-f", "FILE", "--backend", "api"), "invalid address"),
        (("check", "-f", "FILE", *["--backend", "a=[::1]:1"] * 1001), "at most 1000"),
        (("diff", "--live", "FILE", "--backend", "api=[::1]:1"), "--backend: not with --live"),
        (("explain", "--live", "/", "--backend", "api=[::1]:1"), "--backend: only with -f"),
    ],
)
def test_wrong_usage_is_refused(file: str, arguments: tuple[str, ...], said: str) -> None:
    outcome = call(*(file if one == "FILE" else one for one in arguments))
    assert outcome.status == 2
    assert said in outcome.err
