"""Dashboards and alerts: every name is one of the catalogue, every expression one of Prometheus."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from edgefast.monitoring.alerts import ALERTS, RECORDED
from edgefast.monitoring.controller_metrics import CONTROLLER
from edgefast.monitoring.generate import DOCS
from edgefast.monitoring.panel import expressions_of
from edgefast.monitoring.promql import check_expression, metrics_of
from edgefast.monitoring.proxy_metrics import PROXY
from monitoring.promtool import run_promtool

pytestmark = pytest.mark.pure

BOARDS = ["traffic", "limits", "control-plane"]
VARIABLES = {"$__rate_interval": "5m", "$job": ".*", "$instance": ".*"}


def _tracker(name: str) -> list[str]:
    return list(expressions_of(json.loads((DOCS / "monitoring" / f"{name}.json").read_text())))


@pytest.mark.parametrize("name", BOARDS)
def test_dashboards_read_what_is_exposed(name: str) -> None:
    found = _tracker(name)
    assert len(found) > 15
    assert not [wrong for one in found for wrong in check_expression(one)]


@pytest.mark.parametrize("name", BOARDS)
def test_dashboards_have_expressions_of_prometheus(name: str, tmp_path: Path) -> None:
    rules = []
    for number, expression in enumerate(_tracker(name)):
        for variable, value in VARIABLES.items():
            expression = expression.replace(variable, value)
        assert "$" not in expression and "{$" not in expression
        rules.append({"record": f"panel:{number}", "expr": expression})
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": name, "rules": rules}]}))
    assert f"{len(rules)} rules found" in run_promtool("check", "rules", path)


@pytest.mark.parametrize("name", BOARDS)
def test_panels_stand_beside_each_other(name: str) -> None:
    board = json.loads((DOCS / "monitoring" / f"{name}.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(numbers) == len(set(numbers))


#: Neither in a dashboard nor in an alert: what is looked up, and the parts of what is shown as a whole.
LOOKED_UP = {
    "edgefast_info",
    "edgefast_table_age_seconds",
    "edgefast_table_resources",
    "edgefast_arena_used_bytes",
    "edgefast_arena_retired_bytes",
    "edgefast_last_good_age_seconds",
    "edgefast_tables_total",
    "edgefast_applies_total",
    "edgefast_resources_refused_total",
    "edgefast_retries_total",
    "edgefast_body_malformed_total",
    "edgefast_http10_requests_total",
    "edgefast_bodies_not_gathered_total",
    "edgefast_pending_gave_way_total",
    "edgefast_health_checks_total",
    "edgefast_zone_own_total",
    "edgefast_zone_other_total",
    "edgefast_parser_disagreements_total",
    "edgefast_xds_last_commit_timestamp_seconds",
    "edgefast_xds_streams_total",
    "edgefast_xds_failures_total",
    "edgefast_xds_commits_total",
    "edgefast_xds_nacks_total",
    "edgefast_xds_mismatches_total",
    "edgefast_xds_received_bytes_total",
    "edgefast_controller_config_refusals_total",
    "edgefast_controller_deferred_routes",
    "edgefast_controller_pushes_total",
    "edgefast_controller_pushed_resources_total",
}


def test_every_metric_is_shown_or_watched() -> None:
    """A new family has a panel or an alert, or somebody says here that it needs none."""
    used = [*RECORDED.values(), *(one.expr for one in ALERTS)]
    used += [one for name in BOARDS for one in _tracker(name)]
    shown = {name for one in used for name in metrics_of(one)}
    shown |= {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    missing = {one.name for one in (*PROXY.values(), *CONTROLLER.values())} - shown
    assert missing == LOOKED_UP


def test_alerts_read_what_is_exposed_or_recorded() -> None:
    for record, expression in RECORDED.items():
        assert not check_expression(expression), record
    for alert in ALERTS:
        plain = alert.expr
        recorded = re.findall(r"edgefast:[\w:]+", plain)
        assert set(recorded) <= set(RECORDED), alert.name
        for name in recorded:
            plain = plain.replace(name, f"({RECORDED[name]})")
        assert not check_expression(plain), alert.name


def test_every_alert_says_what_to_do() -> None:
    assert len({one.name for one in ALERTS}) == len(ALERTS)
    for alert in ALERTS:
        assert alert.name.startswith("Edgefast") and alert.summary and alert.todo
        labels = set(re.findall(r"\$labels\.(\w+)", alert.summary))
        grouped = re.search(r"\bby \(([^)]*)\)", alert.expr)
        if grouped:
            assert labels <= {one.strip() for one in grouped[1].split(",")}, alert.name


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("sum(edgefast_readyy)", ["edgefast_readyy is not exposed"]),
        ("edgefast_requests", ["edgefast_requests is not exposed"]),
        ("sum by (rout) (edgefast_requests_total)", ["no metric here has a label rout"]),
        ('edgefast_requests_total{klass="5xx"}', ["edgefast_requests_total has no label klass"]),
        ("rate(edgefast_ready[5m])", ["rate() of the gauge edgefast_ready"]),
        ("edgefast_request_duration_seconds", ["edgefast_request_duration_seconds is not exposed"]),
        ("up == 0", ["not a metric of edgefast: up == 0"]),
        ("edgefast_ready_bucket", ["edgefast_ready_bucket is not exposed"]),
        ('sum by (le, route) (edgefast_request_duration_seconds_bucket{job="x"})', []),
    ],
)
def test_what_is_wrong_is_found(expression: str, wrong: list[str]) -> None:
    assert check_expression(expression) == wrong


def test_names_within_texts_are_no_metrics() -> None:
    assert metrics_of('edgefast_ready{job="edgefast_nothing"}') == ["edgefast_ready"]
