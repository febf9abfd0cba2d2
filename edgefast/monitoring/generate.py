"""Writes what follows from the catalogue: docs/reference/metrics.md, and dashboards, rules and their page in docs/monitoring.

In: `python -m edgefast.monitoring.generate --write` (without the flag: exit status 1 when a file differs). Out: files.
A test holds generated = committed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from edgefast.monitoring.controllerfamilies import CONTROLLER
from edgefast.monitoring.controlplane import CONTROL_PLANE
from edgefast.monitoring.limits import LIMITS
from edgefast.monitoring.page import render_page
from edgefast.monitoring.panel import render_dashboard
from edgefast.monitoring.proxyfamilies import PROXY
from edgefast.monitoring.rulesfile import render_guide, render_rules
from edgefast.monitoring.traffic import TRAFFIC

__all__ = ["DOCS", "generated", "main"]

DOCS = Path(__file__).parents[2] / "docs"


def generated() -> dict[Path, str]:
    """Return every generated file with its text."""
    folder = DOCS / "monitoring"
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
    files = {
        DOCS / "reference" / "metrics.md": render_page(),
        folder / "rules.yaml": render_rules(),
        folder / "README.md": render_guide(),
    }
    for name, (title, text, jobs_of, rows) in boards.items():
        made = render_dashboard(f"edgefast-{name}", title, text, jobs_of, rows)
        files[folder / f"{name}.json"] = json.dumps(made, indent=1) + "\n"
    return files


def main(arguments: list[str]) -> int:
    """Write the files, or say which differ."""
    stale = [
        path for path, text in generated().items() if not path.exists() or path.read_text() != text
    ]
    if arguments == ["--write"]:
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(generated()[path])
        return 0
    for path in stale:
        sys.stderr.write(f"{path.relative_to(DOCS.parent)} is stale\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
