"""Fleet: which set of proxies serves a Gateway, and its name.

In: Gateways with their classes. Out: fleet names and the ports that the proxies bind. Standalone
has one fleet. A cluster has one per Gateway or per merged class; merged in Gateway Namespace mode,
one per class and namespace. `infra.py` makes the objects around a fleet, `assemble.py` what it
serves.
Source: spec sections 1 and 2 (generated data plane resources): names, hashes.
Must never: change a name; load balancers and their addresses depend on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from edgefast import ir
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.settings import Settings

STANDALONE = "standalone"
_PREFIX = "edge-"
_LABEL_LIMIT = 63
_NAME_LIMIT = 48  # with prefix and hash within the 63 characters of a Service name


def fleet_key(draft: GatewayDraft, settings: Settings) -> str:
    """Return what makes a fleet one: the text its hash is taken of."""
    if settings.standalone:
        return STANDALONE
    namespace, name = draft.key
    if not draft.gateway_class.merged:
        return f"{namespace}/{name}"
    class_name = draft.gateway.spec.gateway_class_name
    return f"{namespace}/{class_name}" if settings.gateway_namespace_mode else class_name


def fleet_name(draft: GatewayDraft, settings: Settings) -> str:
    """Return the name of the fleet that serves a Gateway."""
    if settings.standalone:
        return STANDALONE
    key = fleet_key(draft, settings)
    merged = draft.gateway_class.merged
    plain = draft.gateway.spec.gateway_class_name if merged else key.replace("/", "-")
    # A Service's name is one DNS label. Gateways and classes may have dots in theirs, and the class of Ingresses has a capital.
    plain = plain.replace(".", "-").lower()[:_NAME_LIMIT].rstrip("-")
    return f"{_PREFIX}{plain}-{digest_of(key)}"


def fleet_namespace(draft: GatewayDraft, settings: Settings) -> str:
    """Return the namespace that the fleet of a Gateway lives in, "" in standalone."""
    if settings.standalone:
        return ""
    return draft.key[0] if settings.gateway_namespace_mode else settings.namespace


def label_value(name: str) -> str:
    """Return an object's name as a label's value, which has 63 characters at most."""
    return name if len(name) <= _LABEL_LIMIT else f"{name[:_NAME_LIMIT]}-{digest_of(name)}"


def is_cut(value: str) -> bool:
    """Tell whether a label's value may be the short form of a longer name."""
    return len(value) == _NAME_LIMIT + len(f"-{digest_of('')}")


def digest_of(text: str) -> str:
    """Return the 8 hex characters that names end in (spec section 2)."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def container_port(port: int, settings: Settings) -> int:
    """Return the port to bind: unprivileged in fleets, the listener's own in standalone."""
    return port + 10_000 if port < 1024 and not settings.standalone else port


def join_secrets(secrets: Iterable[ir.Secret]) -> tuple[ir.Secret, ...]:
    """Return each secret once, by name; one used as certificate and as authority has both."""
    joined: dict[str, ir.Secret] = {}
    for one in secrets:
        other = joined.get(one.name)
        if other is not None and other != one:
            one = ir.Secret(
                name=one.name,
                certificate=one.certificate or other.certificate,
                private_key=one.private_key or other.private_key,
                ca=one.ca or other.ca,
                staple=one.staple or other.staple,
                staple_until=one.staple_until or other.staple_until,
            )
        joined[one.name] = one
    return tuple(joined[name] for name in sorted(joined))
