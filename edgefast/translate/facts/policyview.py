"""PolicyView: a BackendTLSPolicy in force, as routes and clusters see it.

In: what backendtlspolicy.py found out. Out: plain values: which port, what TLS, or why connections must fail.
Must never: exist for a policy that lost a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgefast import ir


class PolicyView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One policy on one Service, or on one port of it."""

    policy: str  # "namespace/name"
    section: str  # port name, "" for all ports without a policy of their own
    broken: str = ""  # why requests must fail, "" when it works
    tls: ir.UpstreamTls | None = None
    secrets: tuple[ir.Secret, ...] = ()


def policy_for(views: Iterable[PolicyView], port: str) -> PolicyView | None:
    """Return the policy of a port: its own before the whole Service's."""
    whole = None
    for view in views:
        if view.section == port and port:
            return view
        if not view.section:
            whole = view
    return whole
