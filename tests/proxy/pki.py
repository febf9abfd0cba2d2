"""A small certificate authority for tests: PEM bytes, made once per process and key kind.

In: names. Out: `Pair`s (certificate chain, key) and the CA's bundle. Keys are for tests only.
"""

from __future__ import annotations

import datetime
import functools
import ipaddress
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
EXPIRES = datetime.datetime(2040, 1, 1, tzinfo=datetime.UTC)
_BEGINS = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


class Pair(NamedTuple):
    """PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Issues certificates."""

    def __init__(self, name: str = "test CA") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
        builder = builder.add_extension(_key_usage(ca=True), critical=True)
        self.bundle = _pem(builder.sign(self._key, hashes.SHA256()))

    def issue(
        self,
        *names: str,
        kind: str = "ec",
        uris: tuple[str, ...] = (),
        seconds: int = 0,
        common: str = "",
    ) -> Pair:
        """A certificate for DNS names, IP addresses and URIs. `seconds`: that it is valid from now on. `common`: its common name."""
        key = _rsa_key() if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, common or (*names, "none")[0])]
        )
        general: list[x509.GeneralName] = [x509.UniformResourceIdentifier(one) for one in uris]
        for name in names:
            try:
                general.append(x509.IPAddress(ipaddress.ip_address(name)))
            except ValueError:
                general.append(x509.DNSName(name))
        expires = EXPIRES
        if seconds:
            expires = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
        builder = _builder(subject, self._name, key.public_key(), expires)
        builder = builder.add_extension(x509.BasicConstraints(False, None), critical=True)
        if general:
            builder = builder.add_extension(x509.SubjectAlternativeName(general), critical=False)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), _key_pem(key))


def encrypted(pair: Pair) -> Pair:
    """The same pair with a passphrase on the key."""
    key = serialization.load_pem_private_key(pair.key, None)
    return Pair(
        pair.certificate,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        ),
    )


@functools.cache
def _rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey,
    expires: datetime.datetime = EXPIRES,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGINS)
        .not_valid_after(expires)
    )


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
