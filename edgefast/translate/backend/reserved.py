"""Reserved addresses: never backends, unless the administrator allows them.

In: an endpoint and the settings. Out: an error text, or "". One list applies to Services, Backends
and XBackends, and so to authorization services, JWKS and mirrors: `edgefast.netaddr.RESERVED`. The
data plane applies it again to every address that a name resolves to.
Must never: resolve a name.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast import ir
from edgefast.netaddr import why_reserved
from edgefast.translate.settings import Settings

__all__ = ["HINT", "UNIX_HINT", "allowed_of", "check_endpoint_address", "check_unix"]

HINT = "the administrator allows ranges with EdgeGateway backends.allowedCIDRs"
UNIX_HINT = "the administrator allows them with EdgeGateway backends.allowUnixSockets"


def check_endpoint_address(address: str, settings: Settings) -> str:
    """Return why an address is refused, "" when it is not."""
    what = why_reserved(address, settings.backend_cidrs)
    return f"{address} is not allowed as a backend ({what})" if what else ""


def check_unix(settings: Settings) -> str:
    """Return why a unix socket is refused, "" when it is not."""
    return (
        "" if settings.unix_backends else "a unix socket of the proxy is not allowed as a backend"
    )


def allowed_of(endpoints: Iterable[ir.Endpoint], settings: Settings) -> tuple[str, ...]:
    """Return the ranges that names of these endpoints may resolve into: () if no endpoint has a name."""
    return settings.backend_cidrs if any(one.hostname for one in endpoints) else ()
