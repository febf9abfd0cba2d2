"""Make throw-away certificates for trying TLS: a kubernetes.io/tls Secret for each name=hostname[,hostname...] given.

Out: YAML on stdout, to be handed to the gateway beside the example (`-f`). Self-signed, ECDSA P-256, valid for 30 days
from yesterday. For trying only: nobody has reason to trust these.
"""

from __future__ import annotations

import base64
import datetime
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SECRET = """\
apiVersion: v1
kind: Secret
metadata: {{name: {name}, namespace: default}}
type: kubernetes.io/tls
data:
  tls.crt: {certificate}
  tls.key: {key}
"""


def make_pair(hostnames: list[str]) -> tuple[bytes, bytes]:
    """A certificate and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hostnames[0])])
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(yesterday)
        .not_valid_after(yesterday + datetime.timedelta(days=31))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(h) for h in hostnames]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(pem), private


def make_secret(name: str, hostnames: list[str]) -> str:
    """One Secret as YAML."""
    certificate, key = make_pair(hostnames)
    return SECRET.format(
        name=name,
        certificate=base64.b64encode(certificate).decode(),
        key=base64.b64encode(key).decode(),
    )


def main() -> int:
    wanted = [argument.partition("=") for argument in sys.argv[1:]]
    if not wanted or not all(name and hostnames for name, _, hostnames in wanted):
        print(f"usage: {sys.argv[0]} NAME=HOSTNAME[,HOSTNAME...] ...", file=sys.stderr)
        return 2
    print(
        "---\n".join(make_secret(name, hostnames.split(",")) for name, _, hostnames in wanted),
        end="",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
