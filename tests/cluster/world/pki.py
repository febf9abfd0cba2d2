"""Certificates of one control plane: its CA, servers, components and the key that signs ServiceAccount tokens.

In: a folder and the addresses of the API server. Out: PEM files `<name>.crt`, `<name>.key`, `ca.crt`, `sa.key`, `sa.pub`.
ECDSA P-256 throughout: a whole set takes about 20 ms.
Must never: be valid longer than a test run could need.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = datetime.timedelta(days=30)


class Pki:
    """The CA of a control plane and what it has signed, all in one folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "world-ca")])
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        builder = builder.add_extension(_usage(), True)
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), False
        )
        self._write_pair("ca", builder.sign(self._key, hashes.SHA256()), self._key)

    def issue(
        self,
        name: str,
        common_name: str,
        *,
        groups: Iterable[str] = (),
        dns: Iterable[str] = (),
        addresses: Iterable[str] = (),
        server: bool = False,
        client: bool = True,
    ) -> None:
        """Write `<name>.crt` and `<name>.key`: a certificate of user `common_name` in `groups`."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        parts.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        uses = [ExtendedKeyUsageOID.SERVER_AUTH] if server else []
        uses += [ExtendedKeyUsageOID.CLIENT_AUTH] if client else []
        names: list[x509.GeneralName] = [x509.DNSName(one) for one in dns]
        names += [x509.IPAddress(ipaddress.ip_address(one)) for one in addresses]
        builder = self._builder(x509.Name(parts), key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
        self._write_pair(name, builder.sign(self._key, hashes.SHA256()), key)

    def write_token_key(self) -> None:
        """Write `sa.key` and `sa.pub`, the pair of the ServiceAccount tokens."""
        key = ec.generate_private_key(ec.SECP256R1())
        self._write("sa.key", _key_text(key))
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        self._write("sa.pub", key.public_key().public_bytes(serialization.Encoding.PEM, form))

    def _builder(
        self, name: x509.Name, public: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name)
        builder = builder.public_key(public).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
        return builder.not_valid_after(now + _VALID)

    def _write_pair(
        self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
    ) -> None:
        self._write(f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))
        self._write(f"{name}.key", _key_text(key))

    def _write(self, name: str, text: bytes) -> None:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(text)


def make_pki(folder: Path, api_addresses: Iterable[str], node: str, node_address: str) -> None:
    """Write everything a control plane and its one node need."""
    pki = Pki(folder)
    service = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    pki.issue(
        "apiserver",
        "kube-apiserver",
        dns=["localhost", *service, "kubernetes.default.svc.cluster.local"],
        addresses=["127.0.0.1", *api_addresses],
        server=True,
        client=False,
    )
    pki.issue(
        "kubelet",
        f"system:node:{node}",
        groups=["system:nodes"],
        dns=[node],
        addresses=[node_address],
        server=True,
    )
    pki.issue(
        "apiserver-kubelet-client", "kube-apiserver-kubelet-client", groups=["system:masters"]
    )
    pki.issue("admin", "world-admin", groups=["system:masters"])
    pki.issue("agent", "world-agent", groups=["system:masters"])
    pki.issue("controller-manager", "system:kube-controller-manager")
    pki.issue("proxy", "system:kube-proxy")
    pki.write_token_key()


def _usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
