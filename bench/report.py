"""The report: tables, goals and the machine line as one markdown file in bench/results/.

In: tables. Out: text, and the path it was written to. Must never overwrite another day's result.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.goals import judge_goals
from bench.table import Table

RESULTS = Path(__file__).parent / "results"
MAX_NAME = 60


def render_report(tables: Sequence[Table], machine: str, method: str) -> str:
    """The whole file."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [f"# Bench, {now}", "", f"Machine: {machine}", "", f"Method: {method}", ""]
    if goals := judge_goals(tables):
        parts += ["## Goals", "", *(f"- {line}" for line in goals), ""]
    parts += [table.to_markdown() for table in tables]
    return "\n".join(parts)


def write_report(text: str, rows: Sequence[str], all_rows: bool, suffix: str) -> Path:
    """Write to bench/results/<date>-<row set>.md; a second run of the day gets -2, -3, ..."""
    RESULTS.mkdir(exist_ok=True)
    row_set = "all" if all_rows else "-".join(rows)[:MAX_NAME]
    stem = datetime.now(UTC).strftime("%Y-%m-%d-") + row_set + suffix
    path, number = RESULTS / f"{stem}.md", 2
    while path.exists():
        path, number = RESULTS / f"{stem}-{number}.md", number + 1
    path.write_text(text)
    return path
