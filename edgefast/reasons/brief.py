"""Brief: what a reason means and what to do about it, as plain values, for whoever shows a message.

In: a word. Out: its page without places and examples. Must never: say anything that the page does not.
"""

from __future__ import annotations

from edgefast.reasons.catalogue import PAGES
from edgefast.reasons.plain import plain_text

__all__ = ["brief"]


def brief(word: str) -> dict[str, object]:
    """Return `word`, `means` and `fix`, a list. Raises ValueError for a word that is no reason."""
    page = PAGES.get(word)
    if page is None:
        raise ValueError("no such reason")
    fix = [plain_text(one) for one in page.fix]
    return {"word": page.word, "means": plain_text(page.means), "fix": fix}
