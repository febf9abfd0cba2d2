"""Header ops: edits of the headers of a request or an answer in the IR.

In: written by `translate` only. Out: `HeaderOps`. Must never: name a header that frames a message.
"""

from __future__ import annotations

from edgefast.ir.telemetry import Struct


class HeaderOps(Struct, frozen=True, gc=False):
    """HTTPHeaderFilter: remove, then set, then add. Names in lower case."""

    set: tuple[tuple[str, str], ...] = ()
    add: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()
