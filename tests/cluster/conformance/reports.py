"""Where the suite's reports are kept: the folders and names of the Gateway API's repository (conformance/reports/README.md there).

In: a release, a mode. Out: the path of its report. A folder `reports/v1.7/edgefast` is a pull request for that repository as it is.
Must never: change what the suite has written.
"""

from __future__ import annotations

from pathlib import Path

from cluster.conformance.modes import Mode
from cluster.world.folder import PROJECT
from edgefast import __version__

REPORTS = PROJECT / "docs" / "conformance" / "reports"


def report_folder(release: str) -> Path:
    """Return the folder of one release: those of the repository are of a minor version since v1.5."""
    return REPORTS / release.rpartition(".")[0] / "edgefast"


def report_path(release: str, mode: Mode) -> Path:
    """Return the path of the report of one mode."""
    return report_folder(release) / f"experimental-v{__version__}-{mode.report}-report.yaml"
