"""Ticket rule: the digest of a TLS port's rules, to which a session ticket is bound (csrc/ticket.h).

In: the rules for handshakes on the port.
Out: 32 bytes, equal for equal rules in every worker, release and replica. A session resumes only
under the rule under which it began. A ticket names no client certificate. A ticket of a port
without client certificates, or with other CAs, is therefore invalid on a port that requires one
(CVE-2025-23419).
Must never: omit a rule for which a full handshake would be refused.
"""

from __future__ import annotations

import hashlib
from typing import Literal

__all__ = ["Verification", "ticket_rule"]

#: What becomes of clients' certificates: not asked for; must verify; asked for, and whatever comes is let in.
Verification = Literal["none", "required", "insecure"]


def ticket_rule(
    port: int, min_version: str, verification: Verification, client_ca: bytes, scope: str = ""
) -> bytes:
    """Return the digest of a port's rule.

    `client_ca`: the bundle itself, not its name: a session does not outlive the trust it was verified by. `scope`: what
    parts the sessions of one port besides, such as a listener's hostname.
    """
    digest = hashlib.sha256(b"edgefast ticket rule 1")
    for part in (str(port).encode(), min_version.encode(), verification.encode(), client_ca):
        digest.update(len(part).to_bytes(8, "big") + part)
    digest.update(scope.encode())
    return digest.digest()
