"""Panels: the parts of a Grafana dashboard, as JSON values.

In: titles and expressions.
Out: a dashboard of rows of panels on Grafana's 24 columns. Every expression is limited to the jobs
and instances that the viewer selected: `{$$}` in an expression is replaced by that selector.
Source: Grafana's dashboard JSON model, schema version 39.
Must never: contain an expression, except those of the variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

__all__ = ["Panel", "Row", "expressions_of", "render_dashboard"]

_COLUMNS = 24
_HEIGHT = 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
#: What stands for the chosen targets: alone, and before other matchers.
_CHOSEN = 'job=~"$job",instance=~"$instance"'


class Panel(msgspec.Struct, frozen=True):
    """One graph: each expression with the legend of its lines. `unit` is a word of Grafana."""

    title: str
    targets: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"  # or "stat", "table"
    text: str = ""
    width: int = 8


class Row(msgspec.Struct, frozen=True):
    """A heading and its panels."""

    title: str
    panels: tuple[Panel, ...]


def render_dashboard(
    uid: str, title: str, text: str, jobs_of: str, rows: Sequence[Row]
) -> dict[str, Any]:
    """Return a dashboard; its variables offer the targets that have the series `jobs_of`."""
    return {
        "uid": uid,
        "title": title,
        "description": text,
        "tags": ["edgefast"],
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": 39,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "links": [
            {
                "title": "edgefast",
                "type": "dashboards",
                "tags": ["edgefast"],
                "asDropdown": True,
                "includeVars": False,
                "keepTime": True,
            }
        ],
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                    "current": {},
                },
                _variable("job", f"label_values({jobs_of}, job)"),
                _variable("instance", f'label_values({jobs_of}{{job=~"$job"}}, instance)'),
            ]
        },
        "panels": list(_place(rows)),
    }


def expressions_of(dashboard: dict[str, Any]) -> Iterator[str]:
    """Give every expression of a dashboard, those of its variables too."""
    for one in dashboard["templating"]["list"]:
        if one["type"] == "query":
            yield one["query"]["query"].removeprefix("label_values(").rpartition(",")[0]
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _place(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Lay panels out from left to right, each row of the dashboard under its heading."""
    number = top = 0
    for row in rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"h": 1, "w": _COLUMNS, "x": 0, "y": top},
            "panels": [],
        }
        top += 1
        left = 0
        for panel in row.panels:
            if left + panel.width > _COLUMNS:
                left, top = 0, top + _HEIGHT
            number += 1
            place = {"h": _HEIGHT, "w": panel.width, "x": left, "y": top}
            yield {"id": number, "gridPos": place, **_render_panel(panel)}
            left += panel.width
        top += _HEIGHT


def _render_panel(panel: Panel) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            _target(expression, legend, chr(ord("A") + at), panel.kind)
            for at, (expression, legend) in enumerate(panel.targets)
        ],
    }
    if panel.kind == "timeseries":
        shown["fieldConfig"]["defaults"]["custom"] = {"fillOpacity": 10, "showPoints": "never"}
        shown["options"] = {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    elif panel.kind == "stat":
        shown["options"] = {"reduceOptions": {"calcs": ["lastNotNull"]}, "graphMode": "area"}
    else:
        shown["transformations"] = [
            {"id": "organize", "options": {"excludeByName": {"Time": True}}}
        ]
    return shown


def _target(expression: str, legend: str, name: str, kind: str) -> dict[str, Any]:
    chosen = expression.replace("{$$}", f"{{{_CHOSEN}}}").replace("{$$,", f"{{{_CHOSEN},")
    target: dict[str, Any] = {"refId": name, "expr": chosen, "legendFormat": legend}
    if kind == "table":
        target |= {"format": "table", "instant": True}
    return target
