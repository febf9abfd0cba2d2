"""Annotation page: the table of docs/reference/ingress-annotations.md.

In: the page. Out: `ROWS`: the cells of each annotation: edgefast, Traefik, ingress2gateway.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["ROWS", "TEXT"]

_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "ingress-annotations.md"
TEXT = _PAGE.read_text()


def _read_rows() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in TEXT.splitlines():
        if row := re.fullmatch(r"\| `([a-z0-9-]+)` \| (.*) \|", line):
            assert row[1] not in found, row[1]
            found[row[1]] = tuple(row[2].split(" | "))
    return found


ROWS = _read_rows()
