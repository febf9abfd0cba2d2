"""The catalogue: the page of every reason, by its word.

In: the files of this folder. Out: `PAGES`, in alphabetical order.
"""

from __future__ import annotations

from edgefast.diagnostics.reasons.fields import FIELDS
from edgefast.diagnostics.reasons.fleets import FLEETS
from edgefast.diagnostics.reasons.gateways import GATEWAYS
from edgefast.diagnostics.reasons.plain_text import plain_text
from edgefast.diagnostics.reasons.routes import ROUTES
from edgefast.diagnostics.reasons.word import Page

__all__ = ["PAGES", "brief"]


PAGES: dict[str, Page] = {
    one.word: one
    for one in sorted((*FIELDS, *FLEETS, *GATEWAYS, *ROUTES), key=lambda page: page.word)
}


# --- brief ---


def brief(word: str) -> dict[str, object]:
    """Return `word`, `means` and `fix`, a list. Raises ValueError for a word that is no reason."""
    page = PAGES.get(word)
    if page is None:
        raise ValueError("no such reason")
    fix = [plain_text(one) for one in page.fix]
    return {"word": page.word, "means": plain_text(page.means), "fix": fix}
