"""Own fields: fields of edgefast's kinds that the kinds of Envoy Gateway with the same name lack.

In: a plain document of Envoy Gateway. Out: a note for each such field. Envoy Gateway has no such field, so it does something else
than the document says.
Source: the CRDs of Envoy Gateway 1.9.1, compared with those of edgefast.
Must never: let one pass: `satisfy: Any` would grant access that Envoy Gateway denies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgefast.api.loaded import Path
from edgefast.api.migration.adoption.adopted_document import Note

__all__ = ["OWN_FIELDS", "find_own_fields"]

_SOURCE = "rateLimit.{}.rules[].clientSelectors[].sourceCIDR.except"
#: Kind -> paths below `spec`; "rules[]" is each of a list. The readers refuse other fields that Envoy Gateway lacks.
OWN_FIELDS: dict[str, tuple[str, ...]] = {
    "SecurityPolicy": (
        "satisfy",
        "authorization.rules[].principal.serverNames",
        "authorization.rules[].principal.clientCertificate",
        "oidc.claimToHeaders",
        "jwt.providers[].requireExpiration",
        *(
            f"extAuth.http.{name}"
            for name in (
                "allRequestHeaders",
                "deniedStatuses",
                "headers",
                "headersToClient",
                "headersToClientOn",
                "headersToClientOnDenied",
                "hostname",
                "method",
                "originalRequest",
                "pathTemplate",
                "signIn",
            )
        ),
        "extAuth.allowedStatuses",
        "extAuth.cache",
    ),
    "BackendTrafficPolicy": (
        "timeout.http.sendTimeout",
        "timeout.http.retryTimeout",
        "bandwidthLimit.response.scope",
        "bandwidthLimit.response.unlimitedBytes",
        "loadBalancer.consistentHash.parts",
        "sessionPersistence",
        "responseOverride[].match.source",
        "responseOverride[].match.headers",
        "responseOverride[].service",
        _SOURCE.format("global"),
        _SOURCE.format("local"),
    ),
    "Backend": ("tls.hostname", "protocol", "proxyProtocol"),
    "HTTPRouteFilter": ("redirect", "responseRewrite", "responseHeaders", "backendProtocol"),
}
#: Items of one list that are looked into; the walk refuses a longer one.
_MOST = 4096


def find_own_fields(kind: str, raw: dict[str, Any]) -> Iterator[Note]:
    """Yield a note for each field that is set and that Envoy Gateway lacks."""
    for name in OWN_FIELDS.get(kind, ()):
        path = next(_find(raw.get("spec"), name.split("."), ("spec",)), None)
        if path is not None:
            message = f"{kind} of Envoy Gateway has no such field"
            hint = f"remove it, or write the {kind} of gateway.edge.io"
            yield Note(path, message, hint, "closes")


def _find(value: object, names: list[str], path: Path) -> Iterator[Path]:
    if not names:
        if value is not None:
            yield path
        return
    name = names[0].removesuffix("[]")
    part = value.get(name) if isinstance(value, dict) else None
    below: Path = (*path, name)
    if name == names[0]:
        yield from _find(part, names[1:], below)
    elif isinstance(part, list):
        for at, one in enumerate(part[:_MOST]):
            yield from _find(one, names[1:], (*below, at))
