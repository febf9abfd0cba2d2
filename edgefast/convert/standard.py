"""Standard: fields of the Gateway API in place of fields of edgefast, and what is lost by that.

In: pieces and the filters that their rules name. Out: the pieces changed in place, and a `Loss` for each thing that requests notice.
Must never: open what a rule closes: an answer 503 becomes a rule without a backend (500), and policies that decide access stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from edgefast.api.edge.httproutefilter import HTTPRouteFilter
from edgefast.api.snapshot import Key
from edgefast.convert.pieces import Piece
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["Loss", "use_standard_fields"]


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """What a field of the Gateway API does not serve."""

    ingress: ObjectRef
    setting: str  # annotation or field
    how: str


def use_standard_fields(
    pieces: Sequence[Piece], filters: Mapping[Key, HTTPRouteFilter]
) -> tuple[Loss, ...]:
    """Change the rules of the pieces."""
    return ()
