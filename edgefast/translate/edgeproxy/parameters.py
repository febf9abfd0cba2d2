"""Parameters: the merged EdgeProxies of a class and of a Gateway, as listeners and fleets need them.

In: both specs; either may be absent. Out: `Parameters`, immutable, so that Gateways of one class
may share them.
Must never: look at an object; an earlier stage decides whether a reference to one is valid.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.api.edge.edgeproxy import EdgeProxySpec
from edgefast.api.edge.edgeproxy_defaults import merge_proxy_specs
from edgefast.translate.edgeproxy.access_log import translate_access_log
from edgefast.translate.edgeproxy.edgeproxy import translate_http
from edgefast.translate.edgeproxy.protocols import proxy_protocol_of, translate_stream
from edgefast.translate.edgeproxy.tracing import translate_tracing


class Parameters(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The merged EdgeProxy settings of a GatewayClass and a Gateway."""

    class_spec: EdgeProxySpec  # of the class alone: of merged Gateways' fleet
    spec: EdgeProxySpec
    http: ir.HttpSettings
    stream: ir.StreamSettings
    proxy_protocol: ir.ProxyProtocol
    access_log: ir.AccessLog
    tracing: ir.Tracing | None


def join_parameters(
    class_spec: EdgeProxySpec | None,
    own: EdgeProxySpec | None,
    *,
    tracing: bool,
    allowed: tuple[str, ...] = (),
) -> Parameters:
    """Join both, the Gateway's own first; `tracing`: spans can be exported where this is served; `allowed`: reserved ranges for their collectors."""
    spec = merge_proxy_specs(class_spec, own)
    return Parameters(
        class_spec=merge_proxy_specs(class_spec),
        spec=spec,
        http=translate_http(spec),
        stream=translate_stream(spec),
        proxy_protocol=proxy_protocol_of(spec.proxy_protocol),
        access_log=translate_access_log(spec),
        tracing=translate_tracing(spec, available=tracing, allowed=allowed),
    )


#: Of neither.
DEFAULTS = join_parameters(None, None, tracing=False)
