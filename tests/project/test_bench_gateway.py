"""The report of bench/gateway: ratios of one run, what edgefast loses, what failed, and plots that are XML."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from bench.gateway.__main__ import PRODUCTS, TESTS
from bench.gateway.plot import draw_lines, draw_steps
from bench.gateway.report import DRAWN, write_report
from bench.gateway.result import Result, round_figures

pytestmark = pytest.mark.pure


def gateway(title: str, *results: Result) -> dict[str, Any]:
    return {"title": title, "version": "v1", "results": [one.as_json() for one in results]}


@pytest.fixture
def run() -> dict[str, Any]:
    """A run of two gateways and two tests; the other gateway fails the second one."""
    ours = [
        Result("traffic", {"requests/s": 900.0, "p50 ms": 2.0, "wrong answers": 0.0}),
        Result("propagation", {"routes": 20.0, "mean ms": 8.0}, {"ms": [(0.0, 9.0), (19.0, 7.0)]}),
    ]
    others = [
        Result("traffic", {"requests/s": 1000.0, "p50 ms": 4.0, "wrong answers": 3.0}),
        Result("propagation", failed="TimeoutError: not so\nafter 300 s"),
    ]
    gateways = {"edgefast": gateway("edgefast", *ours), "other": gateway("Other", *others)}
    made = {
        "date": "2026-01-01",
        "machine": "a CPU, 2 CPUs; load 2.10 at start",
        "scale": 0.1,
        "gateways": gateways,
    }
    return dict(json.loads(json.dumps(made)))


def test_report(run: dict[str, Any], tmp_path: Path) -> None:
    text = write_report(tmp_path, run)
    assert (tmp_path / "README.md").read_text() == text
    assert "at 0.1 of its size" in text
    assert "**Reduced size**: 0.1 of" in text
    assert "**Busy machine**: " in text
    assert "| p50 ms | 2 | 4 | 0.50 |" in text
    assert "| wrong answers | 0 | 3 | 0.00 |" in text
    assert "| routes | 20 | - |  |" in text
    assert "- traffic: requests/s: 900, other 1000\n" in text
    assert text.count("- traffic: ") == 1
    assert "Other did not pass the test: TimeoutError: not so\n" in text
    for plot in tmp_path.glob("*.svg"):
        assert f"]({plot.name})" in text
        ET.fromstring(plot.read_text())
    assert {one.name for one in tmp_path.glob("*.svg")} == {
        "propagation.svg",
        "propagation-lines.svg",
    }


def test_a_run_without_losses(run: dict[str, Any], tmp_path: Path) -> None:
    del run["gateways"]["other"]
    whole = {**run, "scale": 1.0, "machine": "a CPU, 2 CPUs; load 0.40 at start"}
    text = write_report(tmp_path, whole)
    assert "edgefast loses in no figure of this run by more than 5 %." in text
    assert "**" not in text


def test_every_test_is_in_the_report() -> None:
    assert set(DRAWN) == set(TESTS)
    assert list(PRODUCTS)[0] == "edgefast"


def test_lines_stay_in_the_picture() -> None:
    drawn = ET.fromstring(draw_lines("a < b", "s", {"one": [(-0.1, 0.0), (3.0, 720.0)], "two": []}))
    lines = [one for one in drawn.iter() if one.tag.endswith("polyline")]
    assert [one.get("points") for one in lines] == ["60.0,224.0 398.4,98.7", ""]


def test_steps_keep_a_value_until_the_next() -> None:
    steps = draw_steps("a", "s", {"one": [(0.0, 1.0), (4.0, 3.0)]})
    assert steps == draw_lines("a", "s", {"one": [(0.0, 1.0), (4.0, 1.0), (4.0, 3.0)]})


def test_figures_have_four_digits() -> None:
    assert round_figures({"a": 1234567.0, "b": 0.00012345, "c": 0.0}) == {
        "a": 1235000.0,
        "b": 0.0001234,
        "c": 0.0,
    }
