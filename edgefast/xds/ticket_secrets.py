"""TicketSecrets: the secrets from which the proxies of a fleet derive their session ticket keys.

In: built by the controller, read from the stream (ticket_messages.py).
Out: plain bytes.
Must never: import protobuf or gRPC, which agents with file input do not have; or show a secret.
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
