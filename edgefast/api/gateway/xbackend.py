"""XBackend: a backend of a Gateway: an external hostname, or Pods by labels, with its connection settings.

In: `gateway.networking.x-k8s.io/v1alpha1` documents. Out: `XBackend`. `port.number` is the field of
Gateway API v1.7, `port.port` and `port.name` are those of v1.6. Types, protocols and sessions that
v1.6 does not have are v1.7's.
Source: Gateway API v1.6 and v1.7 `apisx` (experimental channel), GEP-4894, GEP-1619.
Must never: resolve a name or list a Pod; in a cluster it counts only when
`extensionApis.enableXBackend` is set.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicyValidation
from edgefast.api.model.fields import (
    Element,
    LabelValue,
    PortNumber,
    PreciseHostname,
    Resource,
    expects,
    refuses,
)
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import SecretObjectReference
from edgefast.api.model.session_persistence import Session

_PORT_NAME = r"^\Z|^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z"
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
#: A label's key: 253 characters of a prefix, "/", 63 of a name; what is longer is not looked at any further.
LABEL_KEY_PATTERN = rf"^(?=[^/]{{1,63}}\Z|[^/]{{1,253}}/[^/]{{1,63}}\Z)({_DOMAIN}/)?{_NAME}\Z"
QualifiedName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=317,
        pattern=LABEL_KEY_PATTERN,
        extra=expects("the key of a label such as app or example.com/app"),
    ),
]


class XBackendPort(Element, frozen=True, kw_only=True):
    """The port that is connected to."""

    number: PortNumber | None = None
    port: PortNumber | None = None
    name: (
        Annotated[
            str,
            Meta(
                max_length=63,
                pattern=_PORT_NAME,
                extra=expects("lower-case letters, digits and -, such as web-1"),
            ),
        ]
        | None
    ) = None

    @property
    def value(self) -> int:
        """The number, by whichever release it is written; 0: by none."""
        return self.number or self.port or 0


class ExternalHostname(Element, frozen=True, kw_only=True):
    """A name that is resolved again and again."""

    hostname: PreciseHostname


class EndpointSelector(Element, frozen=True, kw_only=True):
    """Pods that have all of these labels."""

    match_labels: Annotated[dict[QualifiedName, LabelValue], Meta(min_length=1, max_length=64)]

    @property
    def text(self) -> str:
        """The selector as an API server takes it, and the same for whoever writes the same labels."""
        return ",".join(f"{key}={value}" for key, value in sorted(self.match_labels.items()))


class XBackendTLS(Element, frozen=True, kw_only=True):
    """Whether TLS is spoken, who is trusted, and what is shown."""

    mode: Literal["None", "ServerOnly", "ClientAndServer"]
    client_certificate_ref: SecretObjectReference | None = None
    validation: BackendTLSPolicyValidation | None = None


class XBackendSpec(Element, frozen=True, kw_only=True):
    """`spec` of an XBackend."""

    type: Literal["ExternalHostname", "EndpointSelector"]
    port: XBackendPort
    external_hostname: ExternalHostname | None = None
    endpoint_selector: EndpointSelector | None = None
    session_persistence: Session | None = None
    protocol: (
        Annotated[
            Literal["TCP", "HTTP", "HTTP2", "HTTP11", "H2C", "MCP", "GRPC", "WSS"],
            Meta(extra=refuses("MCP")),
        ]
        | None
    ) = None
    tls: XBackendTLS | None = None

    @property
    def encrypted(self) -> bool:
        """Whether TLS is asked for; a mode that nobody knows is no reason to speak in plain text."""
        return self.tls is not None and self.tls.mode != "None"


class XBackend(Resource, frozen=True, kw_only=True):
    """A target for backendRefs."""

    metadata: ObjectMeta
    spec: XBackendSpec
