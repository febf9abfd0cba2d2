"""Backend: a Backend of Envoy Gateway as one of edgefast.

In: a plain document. Out: an AdoptedDocument. A field without a counterpart that decides where requests go stays in the document, so
that the decoder refuses the Backend and rules with it answer 500.
Must never: weaken the check of a certificate.
"""

from __future__ import annotations

from typing import Any

from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.migration.adoption.adopted_document import AdoptedDocument, Note
from edgefast.api.migration.adoption.fields import Fields, put_field

__all__ = ["BACKEND_FIELDS", "adopt_backend"]

#: Each field that is not the same in both, and what is done with it; "" is dropped, because it is the default here.
BACKEND_FIELDS = {
    "type": "Endpoints is the only type",
    "appProtocols": "gateway.envoyproxy.io/h2c is Backend spec.protocol",
    "fallback": "no equivalent; the Backend is refused",
    "tls.sni": "Backend spec.tls.hostname",
    "tls.wellKnownCACertificates": "System is the default without caCertificateRefs",
    "tls.autoSNIFromEndpointHostname": "the default: the name of fqdn endpoints",
}
_TLS = ("minVersion", "maxVersion", "ciphers", "ecdhCurves", "signatureAlgorithms", "alpnProtocols")
_H2C = "gateway.envoyproxy.io/h2c"
_PLAIN = ("gateway.envoyproxy.io/ws", "gateway.envoyproxy.io/wss")


def adopt_backend(raw: dict[str, Any]) -> AdoptedDocument:
    """Return a Backend of edgefast."""
    fields, notes = Fields(raw.get("spec")), []
    if fields.rest.get("type") in (None, "Endpoints"):
        fields.take("type")
    if fields.rest.get("fallback") is False:
        fields.take("fallback")
    protocols = fields.take("appProtocols")
    for one in protocols if isinstance(protocols, list) else ():
        if one == _H2C:
            put_field(fields.rest, "protocol", "H2C")
        elif one not in _PLAIN:
            message = "not applied: edgefast knows gateway.envoyproxy.io/h2c"
            notes.append(Note(("spec", "appProtocols"), message))
    if isinstance(fields.rest.get("tls"), dict):
        name = fields.take("tls.sni")
        if name is not None:
            put_field(fields.rest, "tls.hostname", name)
        if fields.rest["tls"].get("wellKnownCACertificates") == "System":
            fields.take("tls.wellKnownCACertificates")
        fields.take("tls.autoSNIFromEndpointHostname")
        for part in _TLS:
            if fields.take(f"tls.{part}") is not None:
                message = (
                    "not applied: edgefast uses TLS 1.2 and 1.3 with the suites of its TLS library"
                )
                notes.append(Note(("spec", "tls", part), message))
    return AdoptedDocument(
        raw={
            **raw,
            "apiVersion": f"{EDGE_GROUP}/v1alpha1",
            "kind": "Backend",
            "spec": fields.rest,
        },
        notes=tuple(notes),
    )
