"""Unsupported fields: fields that this release does not serve, and what they close.

In: a kind and the path of a field that its Struct does not have. Out: what the field closes: its
listener, its rule, or the whole object. It closes them when it may decide access or where a request
goes; else nothing, and it is a warning. `UNSERVED` names the fields of the Gateway API's releases
that are not implemented. A test compares it with the list from the API's own CRDs: each of their
fields is one of a Struct or is here. For a field of a newer, unknown release its place in the
object decides. Kinds without such places (Service, Secret, ...) are exempt.
Must never: ignore a field because it is unknown. A new field of edgefast's kinds gets no default
from its CRD: controllers of the previous release would close every object with it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = [
    "IN_PLACE",
    "PLACES",
    "UNSERVED",
    "Closes",
    "UnsupportedField",
    "check_supported",
    "named_field",
]

#: What a field closes; "object": all that the object brings.
Closes = Literal["object", "listener", "rule", "nothing"]


class UnsupportedField(msgspec.Struct, frozen=True, gc=False):
    """One such field of one object."""

    path: str  # "spec.rules[0].sessionPersistence"
    closes: Closes
    known: bool  # a field of a release known here, which is not available yet


def _under(place: str, closes: Closes, *names: str) -> dict[str, Closes]:
    return {f"{place}.{name}": closes for name in names}


#: By kind: fields of the Gateway API, and of Envoy Gateway for kinds of ours that have its words, that no Struct has. What is below
#: one of them goes with it. Schemas of our own kinds have them: an API server would drop them silently otherwise.
UNSERVED: dict[str, dict[str, Closes]] = {
    # An address that is asked to be reachable inside the cluster only would be reachable from everywhere.
    "Gateway": {"spec.addresses[].routability": "object"},
    "SecurityPolicy": {
        **_under("spec", "object", "targetRef", "targetSelectors"),
        **_under("spec", "object", "cors", "csrf"),
        "spec.authorization.rules[].cel": "object",
        "spec.authorization.rules[].principal.clientIPGeoLocations": "object",
        # Where a request goes after its token.
        "spec.jwt.providers[].recomputeRoute": "object",
        "spec.jwt.providers[].remoteJWKS.backendSettings": "nothing",
        # The tokens are in one encrypted session, which has a name of its own.
        **_under("spec.oidc", "nothing", "cookieNames", "disableTokenEncryption"),
        "spec.oidc.provider.backendSettings": "nothing",
        # What the service is told, and where a request goes after its answer.
        **_under(
            "spec.extAuth", "object", "contextExtensions", "includeRouteMetadata", "recomputeRoute"
        ),
        **_under("spec.extAuth", "nothing", "grpc.backendSettings", "http.backendSettings"),
    },
    "XBackendTrafficPolicy": {"spec.sessionPersistence": "object"},
    # Whoever sets a limit relies on it; how a backend is spoken to decides neither who gets in nor where requests go.
    "BackendTrafficPolicy": {
        **_under("spec", "object", "targetRef", "targetSelectors"),
        **_under("spec", "object", "admissionControl", "rateLimit"),
        "spec.bandwidthLimit.request": "object",
        "spec.bandwidthLimit.response.responseTrailers": "nothing",
        **_under("spec", "object", "httpUpgrade", "proxyProtocol"),
        **_under("spec", "nothing", "connection", "dns", "http2"),
        "spec.healthCheck.active.healthCheckLog": "nothing",
        # Envoy's table, which nothing here has, and whose size its API server fills in where nobody has written it.
        "spec.loadBalancer.consistentHash.tableSize": "nothing",
        **_under("spec.loadBalancer", "nothing", "endpointOverride"),
        **_under("spec", "nothing", "retry", "routingType", "tcpKeepalive"),
        **_under("spec", "nothing", "telemetry", "useClientProtocol"),
        # Which answers are meant.
        "spec.responseOverride[].match.headers": "object",
        **_under(
            "spec.timeout.http",
            "nothing",
            *("connectionIdleTimeout", "maxConnectionDuration", "maxStreamDuration"),
        ),
    },
    "HTTPRouteFilter": {
        "spec.credentialInjection": "object",
        "spec.directResponse.header": "object",
        **_under("spec.urlRewrite", "object", "appendXForwardedHost", "hostname"),
    },
}

#: By a field that has to be there: those of the above that people write in its place, and what to write.
IN_PLACE: dict[str, dict[str, str]] = {
    "targetRefs": {
        "targetRef": "write targetRefs: [...], a list",
        "targetSelectors": "list the targets in targetRefs",
    }
}

_WHOLE: tuple[tuple[str, Closes], ...] = (("", "object"),)
#: By kind: the place where a field stands, and what an unknown one there closes. The first place that fits counts.
PLACES: dict[str, tuple[tuple[str, Closes], ...]] = {
    "GatewayClass": _WHOLE,
    "Gateway": (
        ("spec.listeners[]", "listener"),
        ("spec.infrastructure.parametersRef", "object"),
        ("spec.infrastructure", "nothing"),
        *_WHOLE,
    ),
    "ListenerSet": (("spec.listeners[]", "listener"), *_WHOLE),
    "HTTPRoute": (("spec.rules[]", "rule"), *_WHOLE),
    "GRPCRoute": (("spec.rules[]", "rule"), *_WHOLE),
    "TLSRoute": _WHOLE,
    "TCPRoute": _WHOLE,
    "UDPRoute": _WHOLE,
    "ReferenceGrant": _WHOLE,
    "BackendTLSPolicy": _WHOLE,
    "RateLimitFilter": _WHOLE,
    "Backend": _WHOLE,
    "SecurityPolicy": _WHOLE,
    "BackendTrafficPolicy": _WHOLE,
    "XBackend": _WHOLE,
    "XBackendTrafficPolicy": _WHOLE,
    "HTTPRouteFilter": _WHOLE,
    "EdgeProxy": (
        # How many proxies there are, on which machines, and what they tell: nothing of who gets in.
        *(
            (f"spec.{name}", "nothing")
            for name in (
                *("accessLog", "deployment", "hpa", "pdb", "shutdown", "tracing", "workers"),
            )
        ),
        *_WHOLE,
    ),
}


_Pattern = tuple[str, ...]


def _split(text: str) -> _Pattern:
    return tuple(text.replace("[]", ".[]").split(".")) if text else ()


_NAMED = {kind: {_split(at): one for at, one in named.items()} for kind, named in UNSERVED.items()}
_PLACES = {kind: [(_split(at), one) for at, one in places] for kind, places in PLACES.items()}


def check_supported(
    kind: str, path: tuple[str | int, ...], rendered: str
) -> UnsupportedField | None:
    """Judge a field that the Struct of a kind does not have; None where nobody looks.

    `rendered` is the path as it is told.
    """
    places = _PLACES.get(kind)
    if places is None or path[:1] == ("metadata",):
        return None
    pattern = _pattern_of(path)
    named = _NAMED.get(kind, {}).get(pattern)
    if named is not None:
        return UnsupportedField(rendered, named, True)
    closes = next(closes for place, closes in places if pattern[: len(place)] == place)
    return UnsupportedField(rendered, closes, False)


def named_field(kind: str, path: tuple[str | int, ...]) -> bool:
    """Tell whether a release known here has this field, though no Struct does."""
    return _pattern_of(path) in _NAMED.get(kind, {})


def _pattern_of(path: tuple[str | int, ...]) -> _Pattern:
    """Return a path without the positions in its lists."""
    return tuple("[]" if isinstance(part, int) else part for part in path)
