"""GivenSecrets: what a controller gives a fleet's proxies to make session tickets with.

In: built by the controller, read from the stream (tickets.py). Out: plain bytes. It must not import protobuf or gRPC: agents that
files feed do not have them. Must never show a secret.
"""

from __future__ import annotations

import msgspec

__all__ = ["TicketSecrets"]


class TicketSecrets(msgspec.Struct, frozen=True, array_like=True):
    """Secrets of a fleet; `previous` is empty before the first rotation."""

    previous: bytes
    current: bytes
    next: bytes

    def __repr__(self) -> str:
        return "GivenSecrets(<secrets>)"
