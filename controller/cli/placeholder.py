"""Placeholders for Secrets, ConfigMaps and ClusterTrustBundles that the user may not read, so that objects with references to them can be
translated.

In: a reference, the settings.
Out: an object with a newly generated certificate, key and authority, and text for a store's URL and
password. The caller reports the use of a placeholder.
Must never: leave this process, or be compared with the tables of proxies.
"""

from __future__ import annotations

import datetime
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from controller.kube.fetch import Reference
from edgefast.api.core.clustertrustbundle import (
    BundleMeta,
    ClusterTrustBundle,
    ClusterTrustBundleSpec,
)
from edgefast.api.core.configmap import ConfigMap
from edgefast.api.core.secret import Secret
from edgefast.api.model.meta import ObjectMeta
from edgefast.translate.deps.authority import CLUSTER_KIND
from edgefast.translate.settings import Settings

_STORE = b"redis.invalid:6379"


def make_placeholder(
    reference: Reference, settings: Settings
) -> Secret | ConfigMap | ClusterTrustBundle:
    """Return an object that is sound wherever it may be referred to."""
    kind, namespace, name = reference
    certificate, key = _make_pair()
    if kind == CLUSTER_KIND:
        bundle = ClusterTrustBundleSpec(trust_bundle=certificate.decode())
        return ClusterTrustBundle(metadata=BundleMeta(name=name), spec=bundle)
    meta = ObjectMeta(name=name, namespace=namespace)
    if kind == "ConfigMap":
        return ConfigMap(metadata=meta, data={"ca.crt": certificate.decode()})
    data = {"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}
    redis = settings.rate_limit.backend.redis if settings.rate_limit.backend else None
    if redis is not None:
        if redis.url_ref is not None:
            data[redis.url_ref.key or "url"] = _STORE
        if redis.password_ref is not None:
            data[redis.password_ref.key or "password"] = b"not known"
        authority = redis.tls.ca_certificate_ref if redis.tls is not None else None
        if authority is not None and authority.key:
            data[authority.key] = certificate
    return Secret(metadata=meta, type="kubernetes.io/tls", data=data)


@cache
def _make_pair() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "not known")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return (
        made.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
