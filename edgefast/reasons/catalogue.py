"""The catalogue: the page of every reason, by its word.

In: the files of this folder. Out: `PAGES`, in alphabetical order.
"""

from __future__ import annotations

from edgefast.reasons.fields import FIELDS
from edgefast.reasons.fleets import FLEETS
from edgefast.reasons.gateways import GATEWAYS
from edgefast.reasons.routes import ROUTES
from edgefast.reasons.word import Page

__all__ = ["PAGES"]

PAGES: dict[str, Page] = {
    one.word: one
    for one in sorted((*FIELDS, *FLEETS, *GATEWAYS, *ROUTES), key=lambda page: page.word)
}
