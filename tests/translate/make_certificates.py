"""Writes bases/certificates.yaml: the certificates of the golden cases, made once and kept."""

from __future__ import annotations

import datetime
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.manifest import manifest

OUT = Path(__file__).parent / "bases" / "certificates.yaml"
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def make(name: str, key: Key, years: int, *, authority: bool = False) -> str:
    """Return a self-signed certificate as PEM."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(START)
        .not_valid_after(START.replace(year=START.year + years))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def pem(key: Key) -> str:
    """Return a private key as PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def secret(name: str, data: dict[str, str], namespace: str = "default") -> dict[str, object]:
    """Return a TLS Secret."""
    return manifest(f"Secret {namespace}/{name}", type="kubernetes.io/tls", stringData=data)


def main() -> None:
    one, two, authority = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    wide = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    small = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    ecdsa = {"tls.crt": make("example.com", one, 100), "tls.key": pem(one)}
    bundle = make("authority", authority, 100, authority=True)
    objects: list[dict[str, object]] = [
        secret("ecdsa", ecdsa),
        secret("ecdsa-2", {"tls.crt": make("example.org", two, 100), "tls.key": pem(two)}),
        secret("rsa", {"tls.crt": make("example.com", wide, 100), "tls.key": pem(wide)}),
        secret("far", ecdsa, namespace="certs"),
        secret("short-lived", {"tls.crt": make("example.com", one, 1), "tls.key": pem(one)}),
        secret("weak", {"tls.crt": make("example.com", small, 100), "tls.key": pem(small)}),
        secret("mismatch", {"tls.crt": ecdsa["tls.crt"], "tls.key": pem(two)}),
        secret("malformed", {"tls.crt": "no certificate", "tls.key": pem(one)}),
        secret("bad-key", {"tls.crt": ecdsa["tls.crt"], "tls.key": "no key"}),
        manifest("ConfigMap default/authority", data={"ca.crt": bundle}),
        manifest("Secret default/authority-2", stringData={"ca.crt": bundle}),
        manifest("ConfigMap default/bad-authority", data={"ca.crt": "no certificate"}),
    ]
    head = "# Written by make_certificates.py. The keys protect nothing.\n"
    OUT.write_text(head + yaml.safe_dump_all(objects, sort_keys=False))


if __name__ == "__main__":
    main()
