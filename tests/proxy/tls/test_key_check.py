"""What translation accepts is what the TLS library loads: two parsers, one verdict, on material that is odd or weak."""

from __future__ import annotations

import datetime
import functools
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtensionOID, NameOID

from edgefast import ir
from edgefast.core.engine import tls_library
from edgefast.diagnostics.problem import ObjectRef
from edgefast.proxy.tls.key_check import check_fleets
from edgefast.proxy.tls.server import check_secret
from edgefast.translate.tls.certificate import parse_bundle, parse_pair

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
ROOT, MIDDLE, LEAF = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
SMALL_CURVE = ec.generate_private_key(ec.SECP192R1())
ODD_CURVE = ec.generate_private_key(ec.SECP224R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()


@functools.cache
def small_rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 1024)


def pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def issue(
    key: Key, signer: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, issuer: str, subject: str
) -> bytes:
    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(2040, 1, 1, tzinfo=datetime.UTC))
        .add_extension(x509.BasicConstraints(subject != "leaf", None), critical=True)
    )
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def issue_sha1(folder: Path, issuer: str, subject: str) -> bytes:
    """By the openssl command: the library for Python makes none any more."""
    key = {"leaf": LEAF, "middle": MIDDLE, "root": ROOT}[subject]
    (folder / "key").write_bytes(pem(key))
    (folder / "issuer-key").write_bytes(pem(ROOT))
    (folder / "issuer").write_bytes(issue(ROOT, ROOT, issuer, issuer))
    (folder / "ext").write_text(f"basicConstraints=CA:{'FALSE' if subject == 'leaf' else 'TRUE'}")
    request = ["openssl", "req", "-new", "-key", "key", "-subj", f"/CN={subject}", "-out", "csr"]
    sign = ["openssl", "x509", "-req", "-in", "csr", "-sha1", "-days", "99", "-extfile", "ext"]
    sign += ["-out", "made"]
    own = ["-CA", "issuer", "-CAkey", "issuer-key", "-set_serial", "1"]
    for command in (request, sign + (["-signkey", "key"] if issuer == subject else own)):
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=30)
    return (folder / "made").read_bytes()


def good() -> bytes:
    return issue(LEAF, ROOT, "root", "leaf")


def verdicts(chain: bytes, key: bytes) -> tuple[str, str]:
    """What translation says, and what the library says of what would be served ("" is fine)."""
    pair = parse_pair(chain, key)
    if isinstance(pair, str):
        return pair, check_secret(ir.Secret("s", certificate=chain, private_key=key)) or ""
    return "", check_secret(ir.Secret("s", certificate=pair.chain, private_key=pair.key)) or ""


FINE = {
    "plain": lambda: (good(), LEAF),
    "a comment that is not ASCII": lambda: ("# Főtanúsítvány\n".encode() + good(), LEAF),
    "indented": lambda: (good().replace(b"\n", b"\n  "), LEAF),
    "lines of Windows": lambda: (good().replace(b"\n", b"\r\n"), LEAF),
    "no line between two": lambda: (good().rstrip() + issue(ROOT, ROOT, "root", "root"), LEAF),
    "the key in it": lambda: (pem(LEAF) + good(), LEAF),
    "a curve of 224 bits": lambda: (issue(ODD_CURVE, ROOT, "root", "leaf"), ODD_CURVE),
    "Ed25519": lambda: (issue(EDWARDS, ROOT, "root", "leaf"), EDWARDS),
}


@pytest.mark.parametrize("case", FINE)
def test_what_is_accepted_loads(case: str) -> None:
    chain, key = FINE[case]()
    assert verdicts(chain, pem(key)) == ("", "")


#: AWS-LC has no levels of security: what is too weak for OpenSSL's is refused by the translation alone there.
HAS_LEVELS = tls_library().startswith("OpenSSL")

WEAK = {
    "RSA leaf": (lambda: (issue(small_rsa(), ROOT, "root", "leaf"), small_rsa()), "1024 bits"),
    "RSA issuer": (
        lambda: (
            issue(LEAF, small_rsa(), "middle", "leaf") + issue(small_rsa(), ROOT, "root", "middle"),
            LEAF,
        ),
        "the RSA key of CN=middle has 1024 bits",
    ),
    "curve": (lambda: (issue(SMALL_CURVE, ROOT, "root", "leaf"), SMALL_CURVE), "192 bits"),
    "block of rubbish": (
        lambda: (
            good() + b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            LEAF,
        ),
        "not a PEM certificate chain",
    ),
}


@pytest.mark.parametrize("case", WEAK)
def test_what_does_not_load_is_refused_with_words(case: str) -> None:
    make, part = WEAK[case]
    chain, key = make()
    said, library = verdicts(chain, pem(key))
    assert part in said
    assert library or (not HAS_LEVELS and "RSA" in case)


@pytest.mark.parametrize(
    ("issuer", "subject", "refused"),
    [("root", "leaf", True), ("root", "middle", True), ("root", "root", False)],
)
def test_sha1_is_refused_where_a_signature_counts(
    tmp_path: Path, issuer: str, subject: str, refused: bool
) -> None:
    old = issue_sha1(tmp_path, issuer, subject)
    if subject == "middle":
        chain = issue(LEAF, MIDDLE, "middle", "leaf") + old
    else:
        chain = old if subject == "leaf" else good() + old
    said, library = verdicts(chain, pem(LEAF))
    assert bool(said) is refused
    assert bool(library) is (refused and HAS_LEVELS)
    assert not refused or "is signed with SHA1" in said


@pytest.mark.parametrize(
    "comment", ["", "# NetLock Arany (Class Gold) Főtanúsítvány\n", "\ufeff", "=====\n"]
)
def test_a_bundle_that_is_accepted_loads(comment: str) -> None:
    bundle = comment.encode() + issue(ROOT, ROOT, "root", "root")
    read = parse_bundle(bundle + comment.encode() + bundle)
    assert isinstance(read, bytes)
    assert read.isascii()
    assert check_secret(ir.Secret("s", ca=read)) is None


def test_what_the_library_refuses_all_the_same_is_named() -> None:
    secrets = (
        ir.Secret("secret/shop/pair", certificate=good(), private_key=pem(ROOT)),
        ir.Secret("configmap/shop/ca", ca="ő".encode()),
        ir.Secret("bundle/0123", ca=b"rubbish"),
        ir.Secret("secret/shop/fine", certificate=good(), private_key=pem(LEAF)),
    )
    problems = list(check_fleets([ir.Fleet("x", secrets=secrets)]))
    assert [one.object for one in problems] == [
        ObjectRef("Secret", "shop", "pair"),
        ObjectRef("ConfigMap", "shop", "ca"),
        None,
    ]
    assert "does not belong" in problems[0].text()
    assert not [one for one in problems if "BEGIN" in one.text()]


@pytest.mark.parametrize("name", [b"\x30\x02\xa3\x00", b"\x30\x04\x82\x02\xff\xfe", b"junk"])
def test_a_name_that_the_library_cannot_read_is_refused(name: bytes) -> None:
    """The first one is an x400Address: the library's error for it is of no usual family."""
    extension = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, name)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "leaf")])
    builder = (
        x509.CertificateBuilder(subject, subject, LEAF.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(2040, 1, 1, tzinfo=datetime.UTC))
        .add_extension(extension, critical=False)
    )
    chain = builder.sign(LEAF, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    found = parse_pair(chain, pem(LEAF))
    assert isinstance(found, str) and "unreadable" in found


@pytest.mark.parametrize(
    "line",
    [
        b"BEGIN CERTIFICATE" + b" " * 1_000_000 + b"x",
        b"-" * 1_000_000,
        b"BEGIN CERTIFICATE " * 50_000,
        b"-----BEGIN CERTIFICATE-----\n" * 30_000,
    ],
)
@pytest.mark.timeout(5)
def test_a_megabyte_is_read_in_time_that_grows_with_it(line: bytes) -> None:
    """A Secret of any team is read on the controller's event loop."""
    assert isinstance(parse_bundle(line), str)
