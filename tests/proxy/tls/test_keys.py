"""Key material: what is wrong with it in words, what it says."""

from __future__ import annotations

import os

import pytest

from edgefast import ir
from edgefast.proxy.tls.certificates import PemError, read_facts
from edgefast.proxy.tls.server import certificate_covers, check_secret
from proxy.pki import EXPIRES, Pair, encrypted
from proxy.tls.site import CA, OTHER_CA, secret

pytestmark = pytest.mark.pure

A = secret("a", CA.issue("a.test"))


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        (Pair(CA.issue("a").certificate, CA.issue("b").key), "does not belong"),
        (Pair(CA.issue("a").certificate, CA.issue("b", kind="rsa").key), "does not belong"),
        (Pair(b"rubbish", CA.issue("b").key), "certificate is not PEM"),
        (Pair(CA.issue("a").certificate, b"rubbish"), "private key is not PEM"),
        (Pair(CA.issue("a").certificate, b"-----BEGIN PRIVATE KEY-----\nAAAA\n"), "not usable"),
        (encrypted(CA.issue("a")), "encrypted"),
    ],
)
def test_unusable_pairs_say_why_and_show_no_key(pair: Pair, why: str) -> None:
    error = check_secret(secret("s", pair))
    assert error is not None
    assert why in error
    assert "BEGIN" not in error


def test_an_unusable_bundle_says_so() -> None:
    assert check_secret(ir.Secret(name="ca", ca=b"rubbish")) is not None
    assert check_secret(ir.Secret(name="ca", ca=CA.bundle + OTHER_CA.bundle)) is None


def test_keys_leave_no_file_and_no_descriptor() -> None:
    before = set(os.listdir("/proc/self/fd"))
    assert check_secret(A) is None
    assert set(os.listdir("/proc/self/fd")) == before


def test_facts() -> None:
    facts = read_facts(CA.issue("A.test", "*.b.test").certificate)
    assert (facts.kind, facts.names) == ("ec", ("a.test", "*.b.test"))
    assert facts.expires == EXPIRES.timestamp()
    with pytest.raises(PemError):
        read_facts(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


@pytest.mark.parametrize(
    ("name", "host", "covered"),
    [
        ("a.test", "a.test", True),
        ("*.test", "a.test", True),
        ("*.test", "b.a.test", False),
        ("*.test", "test", False),
        ("*", "test", False),
        ("a.test", "b.test", False),
    ],
)
def test_names_in_certificates(name: str, host: str, covered: bool) -> None:
    assert certificate_covers([name], host) is covered
