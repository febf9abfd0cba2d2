"""One self-signed ECDSA P-256 certificate, the same for every proxy in a TLS row.

In: a folder. Out: PEM files `tls.crt`, `tls.key` and both in `tls.pem` (haproxy's form).
Must never be used outside the bench: the key lies in a temporary folder.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAMES = ("localhost", "example.com", "*.example.com")


@dataclass(frozen=True)
class Certificate:
    """Paths of the PEM files."""

    cert: Path
    key: Path
    both: Path


def make_certificate(folder: Path) -> Certificate:
    """Write a fresh pair for NAMES, valid for a week."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "edgefast bench")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=7))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in NAMES]), False)
        .sign(key, hashes.SHA256())
    )
    cert_pem = certificate.public_bytes(serialization.Encoding.PEM)
    key_pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    paths = Certificate(folder / "tls.crt", folder / "tls.key", folder / "tls.pem")
    paths.cert.write_bytes(cert_pem)
    paths.key.write_bytes(key_pem)
    paths.both.write_bytes(cert_pem + key_pem)
    return paths
