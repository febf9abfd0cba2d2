"""Issued certificates: the controller's own certificate, and one for each fleet.

In: an authority, names, a time.
Out: `Pair`s. The controller's certificate has the DNS names of its Service (gateway-api B2) and its
identity as a URI. It is valid for both ends of a connection, because replicas connect to each
other. A fleet's certificate has only its identity. No I/O, no clock.
Must never: put a host name into a fleet's certificate, or a fleet's identity into another one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509

from controller.certs.authority import sign
from controller.certs.identity import controller_uri, fleet_uri
from controller.certs.pair import Pair, names_of, signed_by, uris_of

__all__ = [
    "CLIENT_LIFE",
    "SERVER_LIFE",
    "is_client_good",
    "is_server_good",
    "issue_client",
    "issue_server",
    "read_after",
    "server_names",
]

SERVER_LIFE = timedelta(days=365)
#: The default of FleetCertificates.lifetime.
CLIENT_LIFE = timedelta(hours=72)
#: A time of revocation that was in the future when a certificate was issued because of it (an arc made of a UUID).
_AFTER = x509.ObjectIdentifier("2.25.64689301150936945395898329045834130190")
_TIME = "%Y%m%d%H%M%SZ"


def server_names(name: str, namespace: str, domain: str) -> tuple[str, ...]:
    """Return the DNS names of the controller's Service, shortest first."""
    return (
        name,
        f"{name}.{namespace}",
        f"{name}.{namespace}.svc",
        f"{name}.{namespace}.svc.{domain}",
    )


def issue_server(
    authority: Pair,
    *,
    namespace: str,
    name: str,
    domain: str,
    now: datetime,
    life: timedelta = SERVER_LIFE,
) -> Pair:
    """Issue the controller's certificate: Service `name` in `namespace` of cluster `domain`."""
    alternatives: list[x509.GeneralName] = [
        x509.DNSName(one) for one in server_names(name, namespace, domain)
    ]
    alternatives.append(x509.UniformResourceIdentifier(controller_uri(namespace)))
    return sign(authority, name, alternatives, now, life, server=True)


def issue_client(
    authority: Pair,
    *,
    controller_namespace: str,
    namespace: str,
    name: str,
    now: datetime,
    life: timedelta = CLIENT_LIFE,
    after: datetime | None = None,
) -> Pair:
    """Issue the certificate of fleet `name` in `namespace`; `after`: a future time of revocation that does not revoke it."""
    uri = fleet_uri(controller_namespace, namespace, name)
    marks = () if after is None else (x509.UnrecognizedExtension(_AFTER, _encode_time(after)),)
    return sign(
        authority,
        name,
        [x509.UniformResourceIdentifier(uri)],
        now,
        life,
        server=False,
        extensions=marks,
    )


def read_after(certificate: x509.Certificate) -> datetime | None:
    """Return the `after` of `issue_client`, None when the certificate has none."""
    for one in certificate.extensions:
        if one.oid == _AFTER and isinstance(one.value, x509.UnrecognizedExtension):
            try:
                text = one.value.value[2:].decode()
                return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
            except ValueError:
                return None
    return None


def _encode_time(time: datetime) -> bytes:
    """Return a time as DER GeneralizedTime."""
    text = time.strftime(_TIME).encode()
    return bytes((0x18, len(text))) + text


def is_server_good(pair: Pair, authority: Pair, *, namespace: str, name: str, domain: str) -> bool:
    """Tell whether a controller's certificate is what `issue_server` would make, its dates aside."""
    certificate = pair.certificate
    return (
        signed_by(certificate, authority.certificate)
        and uris_of(certificate) == (controller_uri(namespace),)
        and set(server_names(name, namespace, domain)) <= set(names_of(certificate))
    )


def is_client_good(pair: Pair, authority: Pair, uri: str) -> bool:
    """Tell whether a fleet's certificate is signed by this authority for this identity, its dates aside."""
    return signed_by(pair.certificate, authority.certificate) and uris_of(pair.certificate) == (
        uri,
    )
