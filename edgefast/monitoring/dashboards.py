"""Dashboards: the list of dashboards, and their texts for Grafana.

In: rows of panels.
Out: JSON by name; docs/monitoring and the chart of the controller have the same.
"""

from __future__ import annotations

import json

from edgefast.monitoring.control_plane import CONTROL_PLANE
from edgefast.monitoring.controller_metrics import CONTROLLER
from edgefast.monitoring.limits import LIMITS
from edgefast.monitoring.panel import render_dashboard
from edgefast.monitoring.proxy_metrics import PROXY
from edgefast.monitoring.traffic import TRAFFIC

__all__ = ["render_boards"]


def render_boards() -> dict[str, str]:
    """Return the JSON of every dashboard by its name."""
    ready, leader = PROXY["ready"].name, CONTROLLER["leader"].name
    boards = {
        "traffic": ("edgefast traffic", "Requests, latency, connections.", ready, TRAFFIC),
        "limits": ("edgefast limits", "Rate limits and their store.", ready, LIMITS),
        "control-plane": (
            "edgefast control plane",
            "From objects to proxies, and statuses back.",
            leader,
            CONTROL_PLANE,
        ),
    }
    return {
        name: json.dumps(render_dashboard(f"edgefast-{name}", title, text, jobs_of, rows), indent=1)
        + "\n"
        for name, (title, text, jobs_of, rows) in boards.items()
    }
