"""Connection access: which units of access policies can decide about connections and UDP sessions.

In: the effective units of a layer 4 route, the summaries of their policies, the place of the route.
Out: the fields that decide access and do not apply there. Such a route is closed: its connections
are refused before a backend is dialled.
Source: SecurityPolicy; layer 4 has an address, and no request.
Must never: let a route pass connections about which a field was to decide that cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgefast.api.edge.securitypolicy import Authorization
from edgefast.translate.deps.policy_summary import CLOSED, Level, Unit

__all__ = ["CLIENT_CERTIFICATE", "SERVER_NAMES", "find_unsupported", "list_asks"]

_RULES = "rules[]"
#: Conditions that a TLS listener reads, and those that it reads if it terminates TLS.
SERVER_NAMES = f"{_RULES}.principal.serverNames"
CLIENT_CERTIFICATE = f"{_RULES}.principal.clientCertificate"
#: Units that need a request.
_OF_REQUESTS: tuple[Unit, ...] = ("apiKeyAuth", "basicAuth", "oidc", "jwt", "extAuth")


def list_asks(given: Authorization | None) -> tuple[str, ...]:
    """Return the conditions of an authorization beside client addresses, as field names, sorted."""
    found: dict[str, None] = {}
    for rule in given.rules if given is not None else ():
        operation, principal = rule.operation, rule.principal
        if operation is not None:
            found[f"{_RULES}.operation"] = None
        if principal is not None and principal.server_names:
            found[SERVER_NAMES] = None
        if principal is not None and principal.client_certificate is not None:
            found[CLIENT_CERTIFICATE] = None
        if principal is not None and principal.headers:
            found[f"{_RULES}.principal.headers"] = None
        if principal is not None and principal.jwt is not None:
            found[f"{_RULES}.principal.jwt"] = None
    return tuple(sorted(found))


def find_unsupported(
    units: Iterable[str], levels: tuple[Level, ...], gives: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """Give each of these units that cannot decide about connections, with its field; CLOSED: all of its policy.

    `gives`: the conditions besides addresses that can be read of connections there.
    """
    asks = {
        shape.unit("authorization"): shape.asks
        for level in levels
        for shape in level
        if "authorization" in shape.units
    }
    for name in units:
        feature = name.partition("#")[2]
        if feature == CLOSED or feature in _OF_REQUESTS:
            yield name, feature if feature == CLOSED else f"spec.{feature}"
            continue
        missing = [one for one in asks.get(name, ()) if one not in gives]
        if missing:
            yield name, f"spec.authorization.{missing[0]}"
