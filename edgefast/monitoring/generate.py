"""Generator: writes docs/reference/metrics.md, and dashboards, rules and their page in docs/monitoring.

In: `python -m edgefast.monitoring.generate --write` (without the flag: exit status 1 when a file
differs).
Out: files. A test compares generated and committed files.
"""

from __future__ import annotations

import sys
from pathlib import Path

from edgefast.monitoring.dashboards import render_boards
from edgefast.monitoring.page import render_page
from edgefast.monitoring.rules_file import render_guide, render_rules

__all__ = ["DOCS", "generated", "main"]

DOCS = Path(__file__).parents[2] / "docs"


def generated() -> dict[Path, str]:
    """Return every generated file with its text."""
    folder = DOCS / "monitoring"
    files = {
        DOCS / "reference" / "metrics.md": render_page(),
        folder / "rules.yaml": render_rules(),
        folder / "README.md": render_guide(),
    }
    files |= {folder / f"{name}.json": text for name, text in render_boards().items()}
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
