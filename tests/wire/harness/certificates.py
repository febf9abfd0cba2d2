"""Certificates for tests: one throw-away authority, server and client certificates with RSA and ECDSA keys.

In: names. Out: PEM bytes, and ssl contexts for both ends. Keys of test origins pass through a temporary file, because that is
all the ssl module takes; nothing here is meant to be safe.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """A certificate (with its chain) and its key, both PEM."""

    certificate: bytes
    key: bytes

    @property
    def serial(self) -> int:
        """Serial number: tells certificates of one name apart."""
        return x509.load_pem_x509_certificate(self.certificate).serial_number

    def load_into(self, context: ssl.SSLContext) -> None:
        """Use it in a context."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pair.pem"
            file.write_bytes(self.certificate + self.key)
            context.load_cert_chain(file)


class Authority:
    """Issues certificates; `pem` is what others must trust."""

    def __init__(self, name: str = "edgefast test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self._certificate = builder.add_extension(usage, True).sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + 30 * _DAY)
        )

    def issue(
        self,
        names: Iterable[str],
        kind: Literal["ecdsa", "rsa"] = "ecdsa",
        *,
        client: bool = False,
    ) -> Pair:
        """A certificate for DNS names, addresses or spiffe URIs."""
        key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
        key = ec.generate_private_key(ec.SECP256R1())
        if kind == "rsa":
            key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        listed = list(names)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, listed[0][:60])])
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        certificate = (
            self._builder(subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName([_san(item) for item in listed]), False)
            .add_extension(x509.ExtendedKeyUsage([usage]), False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False
            )
            .sign(self._key, hashes.SHA256())
        )
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    def client_context(self, pair: Pair | None = None, alpn: Iterable[str] = ()) -> ssl.SSLContext:
        """A client that trusts this authority alone, with its own certificate if it has one."""
        context = ssl.create_default_context(cadata=self.pem.decode())
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if pair is not None:
            pair.load_into(context)
        return context

    def server_context(self, pair: Pair, *, ask_client: bool = False) -> ssl.SSLContext:
        """A test origin's context; `ask_client` demands a certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair.load_into(context)
        if ask_client:
            context.load_verify_locations(cadata=self.pem.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _san(name: str) -> x509.GeneralName:
    if "://" in name:
        return x509.UniformResourceIdentifier(name)
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
