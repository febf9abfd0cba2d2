"""Connection access: which fields of policies apply to connections and UDP sessions.

In: the effective units of a layer 4 route, the summaries of their policies, the place of the route.
Out: the fields that do not apply there. A field that decides access closes the route: its
connections are refused before a backend is dialled. Of traffic the other fields apply.
Source: SecurityPolicy; layer 4 has an address, and no request.
Must never: let a route pass connections about which a field was to decide that cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicySpec
from edgefast.api.edge.securitypolicy import Authorization
from edgefast.translate.deps.policy_summary import CLOSED, Level, Unit

__all__ = [
    "CLIENT_CERTIFICATE",
    "SERVER_NAMES",
    "find_unsupported",
    "list_asks",
    "list_request_settings",
]

_RULES = "rules[]"
#: Conditions that a TLS listener reads, and those that it reads if it terminates TLS.
SERVER_NAMES = f"{_RULES}.principal.serverNames"
CLIENT_CERTIFICATE = f"{_RULES}.principal.clientCertificate"
#: Units that need a request.
_OF_REQUESTS: tuple[Unit, ...] = ("apiKeyAuth", "basicAuth", "oidc", "jwt", "extAuth")
#: Settings of traffic that need a request, and circuit breakers, which layer 4 does not count.
_SETTINGS = {
    "request_buffer": "requestBuffer",
    "circuit_breaker": "circuitBreaker",
    "fault_injection": "faultInjection",
    "compressor": "compressor",
    "compression": "compression",
    "bandwidth_limit": "bandwidthLimit",
    "session_persistence": "sessionPersistence",
    "response_override": "responseOverride",
}


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


def list_request_settings(spec: BackendTrafficPolicySpec) -> tuple[str, ...]:
    """Return the settings that do not apply to connections, as field names."""
    found = [name for attr, name in _SETTINGS.items() if getattr(spec, attr) is not None]
    if spec.timeout is not None and spec.timeout.http is not None:
        found.append("timeout.http")
    balancer = spec.load_balancer
    if balancer is not None and balancer.slow_start is not None:
        found.append("loadBalancer.slowStart")
    hashed = balancer.consistent_hash if balancer is not None else None
    if hashed is not None and hashed.type != "SourceIP":
        found.append(f"loadBalancer.consistentHash.type {hashed.type}")
    return tuple(sorted(found))
